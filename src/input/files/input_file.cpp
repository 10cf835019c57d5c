#include "input_file.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/files.h"
#include "base/system_calls.h"
#include "foreign_data.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#endif

namespace cohort::detail {
namespace {

int open(const std::string& path, std::string_view format, InputFile::Pipes pipes) {
  const std::string what = fmt::format("{} file", format);
  return pipes == InputFile::Pipes::kTaken ? open_file_or_pipe(path, what) : open_regular_file(path, what);
}

/// False when nothing came in time.
bool wait_for_data(int descriptor, int milliseconds) {
  pollfd polled{descriptor, POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&polled, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

InputFile::InputFile(std::string path, std::string_view format, Pipes pipes)
    : path_(std::move(path)), descriptor_(open(path_, format, pipes)) {}

InputFile::~InputFile() { ::close(descriptor_); }

std::uint64_t InputFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0)
    throw Unavailable("cannot ask for the size of '{}': {}", path_, std::strerror(errno));
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t InputFile::size_of_content() const {
  const std::uint64_t bytes = size();
  if (bytes == 0) throw DataLoss("{}: the file is empty; write it again, or leave it out", path_);
  return bytes;
}

std::size_t InputFile::read(std::span<char> to) {
  constexpr int kForever = -1;
  constexpr int kUntilAWriterComesMs = 1000;  // one that was started at the same time
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t bytes = ::read(descriptor_, to.data() + done, to.size() - done);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) {
      static_cast<void>(wait_for_data(descriptor_, kForever));
      continue;
    }
    if (bytes < 0) throw DataLoss("{}: reading failed: {}", path_, std::strerror(errno));
    if (bytes == 0 && !std::exchange(has_begun_, true)) {
      // A pipe that nobody has opened for writing looks as if it had ended.
      if (wait_for_data(descriptor_, kUntilAWriterComesMs)) continue;
      throw Unavailable("'{}' is a pipe that nobody writes to; start the writer first", path_);
    }
    has_begun_ = true;
    if (bytes == 0) break;
    done += static_cast<std::size_t>(bytes);
  }
  return done;
}

namespace {

/// Long enough that mapping it costs little compared to reading it, and short enough for the second-level
/// cache to still hold the pages just faulted in.
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

MappedFile::MappedFile(const std::string& path, std::string_view format)
    : file_(path, format), size_(file_.size_of_content()) {}

std::span<const std::byte> MappedFile::bytes(std::uint64_t offset, std::size_t count) {
  if (count == 0) return {};
  reach(offset, count);
  return {window_->data() + (offset - window_offset_), count};
}

Tensor MappedFile::tensor(std::uint64_t offset, const Shape& shape, DType dtype) {
  const std::size_t count = shape.elements() * size_of(dtype);
  if (count == 0) return Tensor::uninitialized(shape, dtype);
  reach(offset, count);
  return Tensor::wrap(window_, offset - window_offset_, shape, dtype);
}

void MappedFile::reach(std::uint64_t offset, std::size_t count) {
  COHORT_CHECK(offset <= size_ && count <= size_ - offset);
  if (window_ && offset >= window_offset_ && offset - window_offset_ <= window_->bytes() &&
      count <= window_->bytes() - (offset - window_offset_))
    return;
  window_.reset();
  const std::uint64_t begin = offset - offset % page_bytes();
  const std::uint64_t wanted = std::max<std::uint64_t>(kWindowBytes, offset - begin + count);
  const auto length = static_cast<std::size_t>(std::min(wanted, size_ - begin));
  // Private, so that a program may write to its tensors; pages that it does not write to are shared with the
  // file.
  const auto mapping =
      std::make_shared<MappedRange>(file_.descriptor(), begin, length, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  if (!*mapping) throw Unavailable("cannot map {} bytes of '{}': {}", length, path(), std::strerror(errno));
  // Faster than one fault per page, and returns an error where a fault would end the process.
  const bool faults = ::madvise(mapping->data(), length, MADV_POPULATE_READ) != 0 && errno == EFAULT;
  // After the end of a file, the rest of its last page is zeros.
  if (faults || file_.size() < size_) {
    throw DataLoss(
        "{}: bytes {} to {} cannot be read: the file has become shorter since it was opened, "
        "or its device fails",
        path(), begin, begin + length);
  }
  window_ = std::make_shared<const Buffer>(mapping->data(), length, Device(), mapping);
  window_offset_ = begin;
}

namespace {

/// Fits into the second-level cache together with what is made from it.
constexpr std::size_t kLeastBufferBytes = std::size_t{1} << 18;

}  // namespace

LineReader::LineReader(const std::string& path, std::string_view format)
    : file_(path, format, InputFile::Pipes::kTaken) {
  read_more();
  const std::string_view hint = compression_hint(std::as_bytes(std::span(buffer_).first(end_)), "");
  if (!hint.empty()) throw DataLoss("{}: not {}: {}", path, format, hint);
}

std::optional<std::string_view> LineReader::next() {
  std::size_t searched = 0;
  while (true) {
    const std::string_view unread(buffer_.data() + begin_, end_ - begin_);
    const std::size_t length = unread.find('\n', searched);
    if (length != std::string_view::npos) {
      ++line_number_;
      begin_ += length + 1;
      return unread.substr(0, length);
    }
    searched = unread.size();
    if (read_more()) continue;
    if (unread.empty()) return std::nullopt;
    ++line_number_;
    begin_ = end_;
    return std::string_view(buffer_.data() + end_ - searched, searched);  // the last line needs no newline
  }
}

bool LineReader::read_more() {
  const std::size_t unread = end_ - begin_;
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, unread);
  begin_ = 0;
  end_ = unread;
  if (end_ == buffer_.size()) buffer_.resize(std::max(kLeastBufferBytes, 2 * buffer_.size()));
  const std::size_t count = file_.read(std::span(buffer_).subspan(end_));
  end_ += count;
  return count > 0;
}

}  // namespace cohort::detail
