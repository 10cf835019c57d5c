// A file in the address space of this process, from its beginning, shared with the other processes that map
// it. It begins at a huge page in every process, for the kernel to use them.
#pragma once

#include <cstddef>
#include <utility>

namespace cohort::server {

class AlignedMapping {
 public:
  AlignedMapping() = default;
  AlignedMapping(AlignedMapping&& other) noexcept { *this = std::move(other); }
  AlignedMapping& operator=(AlignedMapping&& other) noexcept {
    std::swap(range_, other.range_);
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  AlignedMapping(const AlignedMapping&) = delete;
  AlignedMapping& operator=(const AlignedMapping&) = delete;
  ~AlignedMapping();

  /// With the protection of mmap; without an address, and with errno, where the system refuses.
  [[nodiscard]] static AlignedMapping of(int file, std::size_t bytes, int protection);

  [[nodiscard]] std::byte* data() const noexcept { return base_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return base_ != nullptr; }

 private:
  void* range_ = nullptr;  ///< of addresses, a huge page longer than the mapping
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace cohort::server
