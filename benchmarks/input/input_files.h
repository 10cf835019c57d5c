// The files that the input benchmark reads, all of about the same size and of elements of the same number
// of bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "input/input.h"

namespace cohort::bench {

class InputFiles {
 public:
  /// Writes them. @throws Unavailable naming the file that cannot be written.
  explicit InputFiles(const InputBenchOptions& options);
  /// Removes them.
  ~InputFiles();
  InputFiles(const InputFiles&) = delete;
  InputFiles& operator=(const InputFiles&) = delete;

  [[nodiscard]] std::string csv() const { return path("records.csv"); }
  [[nodiscard]] std::string npy() const { return path("records.npy"); }
  [[nodiscard]] std::string tf_record() const { return path("records.tfrecord"); }
  [[nodiscard]] std::string fixed_length() const { return path("records.bin"); }

  /// In each file.
  [[nodiscard]] std::int64_t elements() const { return elements_; }

 private:
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  void write_csv(std::int64_t columns) const;
  void write_npy(std::int64_t columns) const;
  void write_records(std::int64_t bytes) const;

  std::filesystem::path folder_;
  std::int64_t elements_;
};

}  // namespace cohort::bench
