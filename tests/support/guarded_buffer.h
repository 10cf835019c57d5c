// A buffer that shows who leaves it: the page behind it cannot be touched, and the bytes
// before it (and behind it, up to that page) are a pattern that `is_intact` looks at.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>

namespace cohort {

class GuardedBuffer {
 public:
  enum class Place {
    kAtLine,       ///< starts at a cache line
    kPastLine,     ///< starts one element after a cache line
    kAtGuardPage,  ///< ends where the forbidden page starts
  };

  GuardedBuffer(std::size_t bytes, std::size_t element_bytes, Place place) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    usable_ = (bytes + 4 * kLine + page - 1) / page * page;
    void* memory = mmap(nullptr, usable_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    mapped_ = usable_ + page;
    base_ = static_cast<std::byte*>(memory);
    mprotect(base_ + usable_, page, PROT_NONE);
    std::fill_n(base_, usable_, kPattern);
    switch (place) {
      case Place::kAtLine: begin_ = 2 * kLine; break;
      case Place::kPastLine: begin_ = 2 * kLine + element_bytes; break;
      case Place::kAtGuardPage: begin_ = usable_ - bytes; break;
    }
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(base_, mapped_); }

  [[nodiscard]] std::byte* data() { return base_ + begin_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {base_ + begin_, bytes_}; }

  [[nodiscard]] bool is_intact() const {
    const auto untouched = [](std::byte value) { return value == kPattern; };
    return std::all_of(base_, base_ + begin_, untouched) &&
           std::all_of(base_ + begin_ + bytes_, base_ + usable_, untouched);
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::byte kPattern{0xa5};

  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0, begin_ = 0, usable_ = 0, mapped_ = 0;
};

}  // namespace cohort
