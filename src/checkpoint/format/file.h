// Files of a checkpoint, of which every system call is checked: an error names the file and the cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cohort::checkpoint {

/// A new file, written from its beginning to its end.
class OutputFile {
 public:
  /// @throws Unavailable when it cannot be made, or is there already.
  explicit OutputFile(std::string path);
  /// Leaves what was written.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// @throws Unavailable saying after how many bytes, for example that the disk is full.
  void write(std::span<const std::byte> bytes);

  /// Has everything reach the disk. @throws Unavailable.
  void finish();

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// CRC-32C of what was written.
  [[nodiscard]] std::uint32_t checksum() const noexcept { return checksum_; }

 private:
  void start_writing_back() noexcept;

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t writing_back_ = 0;  ///< so many bytes are on their way to the disk
  std::uint32_t checksum_ = 0;
};

/// A file to be read at any place. Any thread may read.
class InputFile {
 public:
  /// @throws Unavailable when it cannot be opened, InvalidArgument when it is not a regular file.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Fills `bytes` from `offset` on. @throws DataLoss when the file ends before, Unavailable when it cannot
  /// be read.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_;
};

/// The whole file. @throws as InputFile; DataLoss for more than `limit` bytes.
[[nodiscard]] std::string read_text(const std::string& path, std::uint64_t limit);

/// Whether it names a file in the folder itself, and leads nowhere else.
[[nodiscard]] bool is_plain_name(std::string_view name) noexcept;

/// CRC-32C of so many bytes of a file from `offset` on, or of the whole file. @throws as InputFile.
[[nodiscard]] std::uint32_t checksum_of(const InputFile& file, std::uint64_t offset, std::uint64_t bytes);
[[nodiscard]] std::uint32_t checksum_of(const InputFile& file);

/// Has the entries of a folder reach the disk. @throws Unavailable.
void sync_folder(const std::string& path);

}  // namespace cohort::checkpoint
