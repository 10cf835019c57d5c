// Random damage to the files of a checkpoint, the same in each run.
#pragma once

#include <map>
#include <random>
#include <string>

#include <nlohmann/json.hpp>

namespace cohort::testing {

/// The files of a checkpoint, by name.
using Files = std::map<std::string, std::string>;

class Damage {
 public:
  /// `other` has files of the same names: those of another step.
  Damage(Files sound, Files other) : sound_(std::move(sound)), other_(std::move(other)) {}

  /// The files after an accident: bits that changed, files that were cut off, lost or mixed up.
  [[nodiscard]] Files by_accident();

  /// The files after somebody edited JSON in one of them and made all checksums right again, so that no
  /// checksum stops a reader from believing it.
  [[nodiscard]] Files by_intent();

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  std::string any_name();
  void change(std::string& bytes, std::string& twin);
  void edit(nlohmann::json& json);
  nlohmann::json strange();

  Files sound_;
  Files other_;
  std::mt19937_64 random_{20260102};
};

}  // namespace cohort::testing
