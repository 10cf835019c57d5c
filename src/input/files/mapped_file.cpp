#include "mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#endif

namespace cohort::detail {
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
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_.descriptor(),
                        static_cast<off_t>(begin));
  if (memory == MAP_FAILED)
    throw Unavailable("cannot map {} bytes of '{}': {}", length, path(), std::strerror(errno));
  std::shared_ptr<void> owner(memory, [length](void* mapping) { ::munmap(mapping, length); });
  // Faster than one fault per page, and returns an error where a fault would end the process.
  const bool faults = ::madvise(memory, length, MADV_POPULATE_READ) != 0 && errno == EFAULT;
  // After the end of a file, the rest of its last page is zeros.
  if (faults || file_.size() < size_) {
    throw DataLoss(
        "{}: bytes {} to {} cannot be read: the file has become shorter since it was opened, "
        "or its device fails",
        path(), begin, begin + length);
  }
  window_ =
      std::make_shared<const Buffer>(static_cast<std::byte*>(memory), length, Device(), std::move(owner));
  window_offset_ = begin;
}

}  // namespace cohort::detail
