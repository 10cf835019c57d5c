#include "file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <cohort/base/error.h>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/system_calls.h"

namespace cohort::checkpoint {

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  descriptor_ = uninterrupted(
      [&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666); });
  if (descriptor_ < 0) throw Unavailable("cannot make '{}': {}", path_, std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  // Piece by piece, so that the checksum finds the bytes in the cache.
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kPiece, bytes.size()));
    const ssize_t written = uninterrupted([&] { return ::write(descriptor_, piece.data(), piece.size()); });
    if (written < 0)
      throw Unavailable("cannot write '{}' after {} bytes: {}", path_, size_, std::strerror(errno));
    const auto count = static_cast<std::size_t>(written);
    checksum_ = detail::crc32c(piece.first(count), checksum_);
    size_ += count;
    bytes = bytes.subspan(count);
    start_writing_back();
  }
}

/// The disk takes what is there while more is written, instead of all of it in finish(). A system that
/// refuses loses that time.
void OutputFile::start_writing_back() noexcept {
  constexpr std::uint64_t kAtATime = std::uint64_t{8} << 20;
  if (size_ - writing_back_ < kAtATime) return;
  static_cast<void>(::sync_file_range(descriptor_, static_cast<off_t>(writing_back_),
                                      static_cast<off_t>(size_ - writing_back_), SYNC_FILE_RANGE_WRITE));
  writing_back_ = size_;
}

void OutputFile::finish() {
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0)
    throw Unavailable("cannot write '{}' to the disk: {}", path_, std::strerror(errno));
  // A network file system may tell only now that it has no room. After a signal, the file is closed on Linux.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    throw Unavailable("cannot close '{}': {}", path_, std::strerror(errno));
}

InputFile::InputFile(std::string path)
    : path_(std::move(path)), descriptor_(open_regular_file(path_, "checkpoint file")), size_(0) {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int cause = errno;
    ::close(descriptor_);
    throw Unavailable("cannot read the size of '{}': {}", path_, std::strerror(cause));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  if (offset > size_ || bytes.size() > size_ - offset) {
    throw DataLoss("'{}' has {} bytes: there are no {} bytes at {}", path_, size_, bytes.size(), offset);
  }
  while (!bytes.empty()) {
    const ssize_t count = uninterrupted(
        [&] { return ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count < 0) throw Unavailable("cannot read '{}' at {}: {}", path_, offset, std::strerror(errno));
    if (count == 0) throw DataLoss("'{}' ends at {}: it became shorter while it was read", path_, offset);
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

std::string read_text(const std::string& path, std::uint64_t limit) {
  const InputFile file(path);
  if (file.size() > limit)
    throw DataLoss("'{}' has {} bytes, more than the {} that such a file may have", path, file.size(), limit);
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool is_plain_name(std::string_view name) noexcept {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

std::uint32_t checksum_of(const InputFile& file, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20));
  std::uint32_t checksum = 0;
  while (bytes > 0) {
    const auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), bytes));
    file.read(offset, piece);
    checksum = detail::crc32c(piece, checksum);
    offset += piece.size();
    bytes -= piece.size();
  }
  return checksum;
}

std::uint32_t checksum_of(const InputFile& file) { return checksum_of(file, 0, file.size()); }

void sync_folder(const std::string& path) {
  const int descriptor =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  // Some file systems do not sync folders, and say EINVAL: then there is nothing more to be had.
  const bool is_synced =
      descriptor >= 0 && (uninterrupted([&] { return ::fsync(descriptor); }) == 0 || errno == EINVAL);
  const int cause = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!is_synced)
    throw Unavailable("cannot write the folder '{}' to the disk: {}", path, std::strerror(cause));
}

}  // namespace cohort::checkpoint
