#include "symmetric_memory.h"

#include <functional>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>

#include "cuda/capture.h"

namespace cohort::nccl {
namespace {

/// What a member's NCCL does with memory; a group does what all of its members do.
enum class Registration : std::uint8_t { kNothing, kPerMember, kWindows };

constexpr Registration kOwnRegistration = calls::kHasWindows  ? Registration::kWindows
                                          : calls::kHasMemory ? Registration::kPerMember
                                                              : Registration::kNothing;

}  // namespace

/// Freed with its last owner, once the GPU has done what was queued: this memory goes at once, not in the
/// order of the stream, which everything that uses it is in or ordered with.
class SymmetricMemory::Memory {
 public:
  Memory(Device device, std::size_t bytes) : device_(device), bytes_(bytes) {
    const cuda::CurrentDevice current(device);
    try {
      data_ = static_cast<std::byte*>(calls::mem_alloc(bytes));
    } catch (const Error&) {
      // The GPU's memory may be in the pool, which keeps what tensors release.
      cuda::empty_pool(device);
      data_ = static_cast<std::byte*>(calls::mem_alloc(bytes));
    }
  }
  ~Memory() {
    cuda::release_on(device_, [this] {
      cuda::compute_stream(device_).drain();
      calls::mem_free(data_);
    });
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  Device device_;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

std::shared_ptr<const Buffer> SymmetricMemory::allocate(std::size_t bytes, const Exchange& exchange) {
  // The registration, and for each allocation whether it is of no more use.
  std::vector<std::uint8_t> agreed{static_cast<std::uint8_t>(kOwnRegistration)};
  for (const Allocation& allocation : allocations_)
    agreed.push_back(allocation.memory.use_count() == 1 ? 1 : 0);
  exchange.least(agreed, Fingerprint().add(bytes).value());
  give_back(std::span(agreed).subspan(1));
  const auto registration = static_cast<Registration>(agreed.front());
  if (registration == Registration::kNothing || bytes == 0) return cohort::allocate(bytes, device_);

  const auto memory = std::make_shared<Memory>(device_, bytes);
  Allocation allocation{.number = allocations_made_++, .memory = memory};
  if (registration == Registration::kWindows) {
    allocation.window =
        comm_.open_window(memory->data(), bytes, Deadline::after(exchange.timeout), exchange.look);
  } else {
    allocation.registration = comm_.register_memory(memory->data(), bytes);
  }
  if (allocation.number == 0) {
    logging::debug("memory for NCCL's collectives on {} is registered {}", to_string(device_),
                   registration == Registration::kWindows
                       ? "as windows, symmetric ones where NCCL has them for these GPUs"
                       : "without windows");
  }
  allocations_.push_back(std::move(allocation));
  return std::make_shared<const Buffer>(memory->data(), bytes, device_, memory);
}

void SymmetricMemory::give_back(std::span<const std::uint8_t> is_unused) {
  std::vector<Allocation> kept;
  for (std::size_t i = 0; i < allocations_.size(); ++i) {
    if (is_unused[i] == 0)
      kept.push_back(std::move(allocations_[i]));
    else
      deregister(allocations_[i]);
  }
  allocations_ = std::move(kept);
}

std::uint64_t SymmetricMemory::place_of(const std::byte* data) const noexcept {
  const std::less<const std::byte*> before;
  for (const Allocation& allocation : allocations_) {
    const std::byte* const begin = allocation.memory->data();
    if (before(data, begin) || !before(data, begin + allocation.memory->bytes())) continue;
    return Fingerprint().add(allocation.number).add(static_cast<std::uint64_t>(data - begin)).value();
  }
  return 0;
}

void SymmetricMemory::deregister(const Allocation& allocation) noexcept {
  if (allocation.window != nullptr) comm_.close_window(allocation.window);
  if (allocation.registration != nullptr) comm_.deregister(allocation.registration);
}

void SymmetricMemory::clear() noexcept {
  for (const Allocation& allocation : allocations_) deregister(allocation);
  allocations_.clear();
}

std::shared_ptr<const void> SymmetricMemory::take() noexcept {
  return std::make_shared<const std::vector<Allocation>>(std::move(allocations_));
}

}  // namespace cohort::nccl
