// The commands of cohort-checkpoint. Each prints its answer and returns the exit code.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.h"

namespace cohort::tool {

constexpr int kSound = 0;
constexpr int kDamaged = 1;

/// What the user asked for cannot be meant; the text says why.
class WrongUse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Arguments {
  std::vector<std::string> paths = {};
  std::map<std::string, std::vector<std::string>> options = {};  ///< `--to FILE` as {"--to", {"FILE"}}

  /// The value of an option that is given once; nothing if it is not given.
  [[nodiscard]] std::optional<std::string> text(const std::string& option) const;

  /// The values of an option, in their order.
  [[nodiscard]] std::vector<std::string> all(const std::string& option) const;

  /// The value of an option as a number above 0; nothing if it is not given. @throws WrongUse.
  [[nodiscard]] std::optional<double> number(const std::string& option) const;
};

int list(const Arguments& arguments);
int show(const Arguments& arguments);
int verify(const Arguments& arguments);
int diff(const Arguments& arguments);
int export_values(const Arguments& arguments);
int import_tensors(const Arguments& arguments);
int advise(const Arguments& arguments);

/// The bytes of all files.
[[nodiscard]] std::uint64_t bytes_of(const checkpoint::Manifest& manifest);

}  // namespace cohort::tool
