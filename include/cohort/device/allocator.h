// Where tensors get their memory. An Allocator hands out Buffers: a range of bytes
// with shared ownership, so that a tensor, its views and a collective in flight may
// each keep it alive. Any thread may allocate and release.
#pragma once

#include <cstddef>
#include <memory>

#include <cohort/device/device.h>

namespace cohort {

/// Alignment of every allocation in bytes: a cache line, and enough for any vector instruction.
inline constexpr std::size_t kAlignment = 64;

/// A range of bytes on a device. The last owner releases it.
///
/// Aligned so that `make_shared` puts the count of owners into cache lines of its own. Each replica counts
/// the handles of its component; on a line that others read, counting has a tenth of the speed.
class alignas(kAlignment) Buffer {
 public:
  /// `data` is kept valid by `owner`; `owner` may be null for memory that outlives every tensor.
  Buffer(std::byte* data, std::size_t bytes, Device device, std::shared_ptr<void> owner)
      : data_(data), bytes_(bytes), device_(device), owner_(std::move(owner)) {}

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Device device() const noexcept { return device_; }

 private:
  std::byte* data_;
  std::size_t bytes_;
  Device device_;
  std::shared_ptr<void> owner_;
};

/// Uninitialised memory of `bytes` bytes on `device`, aligned to `kAlignment`. CPU memory comes
/// from the node heap where there is one with room, otherwise from this process alone; large
/// blocks use huge pages where the kernel allows it (COHORT_HUGE_PAGES).
/// @throws Unavailable when memory is short, or when this build has no such device.
[[nodiscard]] std::shared_ptr<const Buffer> allocate(std::size_t bytes, Device device);

/// The same, never from the node heap: for memory that the other processes of the node shall not see, or that
/// takes no part in collectives: `Tensor::wrap(allocate_private(bytes, device), 0, shape, dtype)`.
/// Collectives accept it, more slowly.
[[nodiscard]] std::shared_ptr<const Buffer> allocate_private(std::size_t bytes, Device device);

}  // namespace cohort
