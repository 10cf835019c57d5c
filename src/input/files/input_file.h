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
  /// Whether it may be a pipe, which only a reader from its beginning to its end can take.
  enum class Pipes { kRefused, kTaken };

  /// @throws Unavailable when it cannot be opened, InvalidArgument for a folder, a device, or a pipe where
  /// these are refused.
  InputFile(std::string path, std::string_view format, Pipes pipes = Pipes::kRefused);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// In bytes.
  [[nodiscard]] std::uint64_t size() const;

  /// The same. @throws DataLoss when the file is empty.
  [[nodiscard]] std::uint64_t size_of_content() const;

  /// Reads from where the last call ended; fewer bytes than asked for only at the end of the file. Waits for
  /// those who write to a pipe.
  /// @throws DataLoss when the system cannot read it, Unavailable for a pipe that nobody writes to.
  [[nodiscard]] std::size_t read(std::span<char> to);

 private:
  std::string path_;
  int descriptor_;
  bool has_begun_ = false;
};

}  // namespace cohort::detail
