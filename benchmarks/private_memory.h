// Ordinary memory, as a program without Cohort would allocate it. Backed by huge pages unless
// told otherwise, so that no library is slowed down by what is easily avoided.
#pragma once

#include <cstddef>
#include <span>

namespace cohort::bench {

class PrivateMemory {
 public:
  /// All zeros, aligned to a huge page. @throws std::bad_alloc when the system refuses.
  PrivateMemory(std::size_t bytes, bool huge_pages);
  ~PrivateMemory();

  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace cohort::bench
