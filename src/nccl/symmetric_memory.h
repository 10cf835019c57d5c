// Memory that the members of a communicator have allocated together by NCCL and registered with it, so that
// NCCL moves what lies there without buffers of its own: as windows, which are symmetric where NCCL has that
// for these GPUs, or else each member's allocation by itself. All members have the same allocations in the
// same order, and register and give back together: NCCL lays out windows by that order, and must not see
// memory in one call that is registered on some members only.
//
// A tensor co-owns its allocation. Allocations that no tensor has any more are given back when the next one
// is made, and all with the communicator, which tensors may outlive. Used by the thread that begins a
// member's calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <cohort/device/allocator.h>

#include "comm.h"

namespace cohort::nccl {

class SymmetricMemory {
 public:
  /// What an allocation needs of the communicator. `least` is the element-wise minimum over all members;
  /// `about` is a fingerprint that they must agree on.
  struct Exchange {
    std::function<void(std::vector<std::uint8_t>& numbers, std::uint64_t about)> least;
    std::chrono::duration<double> timeout;  ///< of a window, once all members have come
    Comm::Look look;
  };

  SymmetricMemory(Device device, Comm& comm) : device_(device), comm_(comm) {}

  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;

  /// A new allocation. Collective over all members; nothing may be in flight.
  /// @throws what the exchange or NCCL do; the communicator is of no use afterwards.
  [[nodiscard]] std::shared_ptr<const Buffer> allocate(std::size_t bytes, const Exchange& exchange);

  /// Where `data` lies in the registered memory, as a fingerprint that is the same on all members for the
  /// same place; 0 elsewhere.
  [[nodiscard]] std::uint64_t place_of(const std::byte* data) const noexcept;

  /// Takes everything from the communicator, before its end. Nothing may be in flight.
  void clear() noexcept;
  /// The memory, for a communicator that may still use it.
  [[nodiscard]] std::shared_ptr<const void> take() noexcept;

 private:
  class Memory;
  struct Allocation {
    std::uint64_t number = 0;
    std::shared_ptr<const Memory> memory;
    // One of the two, which NCCL may also leave null.
    calls::Window window = nullptr;
    void* registration = nullptr;
  };

  void deregister(const Allocation& allocation) noexcept;
  void give_back(std::span<const std::uint8_t> is_unused);

  Device device_;
  Comm& comm_;
  std::uint64_t allocations_made_ = 0;
  std::vector<Allocation> allocations_;
};

}  // namespace cohort::nccl
