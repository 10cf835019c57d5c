// Scratch memory for data on its way between members. It goes back to the pool, for the
// next transfer, and to the system only with the pool: after a failure other members may
// still read and write it, and then the owner of the pool keeps it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <cohort/device/allocator.h>

namespace cohort {

class ScratchPool {
 public:
  /// Longer scratch memory than this is one and the same for all: for simulations, in which nobody looks at
  /// the data of long calls.
  explicit ScratchPool(std::size_t longest_of_its_own = SIZE_MAX) noexcept
      : longest_of_its_own_(longest_of_its_own) {}

  /// The pool must outlive it.
  class Scratch {
   public:
    Scratch() = default;
    explicit Scratch(std::shared_ptr<const Buffer> buffer) : buffer_(std::move(buffer)) {}
    Scratch(ScratchPool& pool, std::shared_ptr<const Buffer> buffer)
        : pool_(&pool), buffer_(std::move(buffer)) {}
    Scratch(Scratch&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)) {}
    Scratch& operator=(Scratch&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(buffer_, other.buffer_);
      return *this;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
      if (pool_ != nullptr) pool_->free_of(buffer_->bytes()).push_back(std::move(buffer_));
    }
    [[nodiscard]] std::byte* data() const noexcept { return buffer_ == nullptr ? nullptr : buffer_->data(); }

   private:
    ScratchPool* pool_ = nullptr;
    std::shared_ptr<const Buffer> buffer_;
  };

  [[nodiscard]] Scratch scratch(std::size_t bytes);

  /// The same with shared ownership.
  [[nodiscard]] std::shared_ptr<std::byte> shared_scratch(std::size_t bytes);

  /// Hands over all memory that is not in use, for an owner that has to keep it; the pool is empty then.
  [[nodiscard]] std::vector<std::shared_ptr<const Buffer>> take();

 private:
  using Buffers = std::vector<std::shared_ptr<const Buffer>>;

  [[nodiscard]] Buffers& free_of(std::size_t bytes) noexcept {
    return free_[static_cast<std::size_t>(std::countr_zero(bytes))];
  }

  std::size_t longest_of_its_own_;
  std::array<Buffers, 64> free_;  ///< of 2^k bytes; of those that are for all, one
};

inline ScratchPool::Scratch ScratchPool::scratch(std::size_t bytes) {
  constexpr std::size_t kSmallest = 4096;
  // Few sizes, so that the memory of one call fits the next.
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  Buffers& free = free_of(size);
  if (bytes > longest_of_its_own_) {
    if (free.empty()) free.push_back(allocate(size, Device()));
    return Scratch(free.front());
  }
  if (free.empty()) return {*this, allocate(size, Device())};
  // The latest one, which may still be in the processor's cache.
  std::shared_ptr<const Buffer> buffer = std::move(free.back());
  free.pop_back();
  return {*this, std::move(buffer)};
}

inline std::vector<std::shared_ptr<const Buffer>> ScratchPool::take() {
  Buffers all;
  for (Buffers& buffers : free_) {
    std::ranges::move(buffers, std::back_inserter(all));
    buffers.clear();
  }
  return all;
}

inline std::shared_ptr<std::byte> ScratchPool::shared_scratch(std::size_t bytes) {
  auto owner = std::make_shared<Scratch>(scratch(bytes));
  std::byte* const data = owner->data();
  return {std::move(owner), data};
}

}  // namespace cohort
