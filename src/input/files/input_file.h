// A file that is open for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cohort::detail {

class InputFile {
 public:
  /// `format` is what messages call the file: `CSV`.
  /// @throws Unavailable when it cannot be opened, InvalidArgument for a folder, a pipe or a device: passes,
  /// positions and workers read a file again, and from anywhere.
  InputFile(std::string path, std::string_view format);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// In bytes.
  [[nodiscard]] std::uint64_t size() const;

  /// The same. @throws DataLoss when the file is empty.
  [[nodiscard]] std::uint64_t size_of_content() const;

  /// Reads from where the last call ended; fewer bytes than asked for only at the end of the file.
  /// @throws DataLoss when the system cannot read it.
  [[nodiscard]] std::size_t read(std::span<char> to) const;

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace cohort::detail
