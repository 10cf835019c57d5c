// What tests of kernels share: a buffer that shows accesses beyond it, and tests that run once for each
// instruction set that kernels are compiled for and that this processor has.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "../../src/collective/kernels/simd_targets.h"
// Last: it takes settings that the header above makes.
#include <hwy/targets.h>

namespace cohort {

/// The page after it cannot be accessed, and some bytes on either side hold a pattern that `is_intact`
/// checks. It can be placed again for the next case.
class GuardedBuffer {
 public:
  enum class Place {
    kAtLine,       ///< starts at a cache line
    kPastLine,     ///< starts one element after a cache line
    kAtGuardPage,  ///< ends where the forbidden page starts
  };

  explicit GuardedBuffer(std::size_t capacity) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    usable_ = (capacity + 4 * kMargin + page - 1) / page * page;
    mapped_ = usable_ + page;
    void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(memory);
    mprotect(base_ + usable_, page, PROT_NONE);
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(base_, mapped_); }

  /// From now on the buffer has this many bytes, here; what they were is lost.
  std::byte* place(Place place, std::size_t bytes, std::size_t element_bytes) {
    switch (place) {
      case Place::kAtLine: begin_ = base_ + kMargin; break;
      case Place::kPastLine: begin_ = base_ + kMargin + element_bytes; break;
      case Place::kAtGuardPage: begin_ = base_ + usable_ - bytes; break;
    }
    bytes_ = bytes;
    std::fill(begin_ - kMargin, margin_end(), kPattern);
    return begin_;
  }

  [[nodiscard]] std::byte* data() { return begin_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {begin_, bytes_}; }

  [[nodiscard]] bool is_intact() const {
    const auto untouched = [](std::byte value) { return value == kPattern; };
    return std::all_of(begin_ - kMargin, begin_, untouched) &&
           std::all_of(begin_ + bytes_, margin_end(), untouched);
  }

 private:
  static constexpr std::size_t kMargin = 128;
  static constexpr std::byte kPattern{0xa5};

  [[nodiscard]] std::byte* margin_end() const { return std::min(begin_ + bytes_ + kMargin, base_ + usable_); }

  std::byte* base_ = nullptr;
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0, usable_ = 0, mapped_ = 0;
};

class OnEveryTarget : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline std::string target_name(const ::testing::TestParamInfo<std::int64_t>& target) {
  return hwy::TargetName(target.param);
}

}  // namespace cohort
