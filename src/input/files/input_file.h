// Files that are open for reading: from beginning to end, as memory, or line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/device/tensor.h>

namespace cohort::detail {

class InputFile {
 public:
  /// Whether it may be a pipe, which only a reader from its beginning to its end can take.
  enum class Pipes { kRefused, kTaken };

  /// `format` is what messages call the file: `CSV`.
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

/// A file in memory, a window at a time: its bytes are tensors without a copy. A window is unmapped
/// when the file has moved on and the last tensor over it is gone, so that reading a file of any
/// size takes the memory of the elements that are in use, and of one window.
class MappedFile {
 public:
  /// @throws Unavailable when the file cannot be opened; InvalidArgument when it is not a regular one;
  /// DataLoss when it is empty.
  MappedFile(const std::string& path, std::string_view format);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Bytes that lie within the file; valid until the next call of either function.
  /// @throws DataLoss when the file has become shorter, or its device fails.
  [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t offset, std::size_t count);

  /// A view of elements that lie within the file and are aligned there. Writing to it changes this
  /// process's copy of the page, not the file. @throws as bytes().
  [[nodiscard]] Tensor tensor(std::uint64_t offset, const Shape& shape, DType dtype);

 private:
  /// Makes the window hold these bytes.
  void reach(std::uint64_t offset, std::size_t count);

  InputFile file_;
  std::uint64_t size_;
  std::shared_ptr<const Buffer> window_;
  std::uint64_t window_offset_ = 0;
};

/// The lines of a file, read through a buffer that grows to the longest of them.
class LineReader {
 public:
  /// @throws Unavailable when the file cannot be opened; DataLoss when it cannot be read, or is compressed.
  LineReader(const std::string& path, std::string_view format);

  /// Whether the file is empty.
  [[nodiscard]] bool is_empty() const { return line_number_ == 0 && begin_ == end_; }

  /// The next line without its newline; nothing at the end. Valid until the next call.
  /// @throws DataLoss when the file cannot be read.
  [[nodiscard]] std::optional<std::string_view> next();

  /// The number, from 1, of the line that next() returned.
  [[nodiscard]] std::int64_t line_number() const { return line_number_; }
  [[nodiscard]] const std::string& path() const { return file_.path(); }

 private:
  /// False at the end of the file.
  bool read_more();

  InputFile file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< of what has not been given yet
  std::size_t end_ = 0;    ///< of what has been read
  std::int64_t line_number_ = 0;
};

}  // namespace cohort::detail
