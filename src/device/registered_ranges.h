// The ranges that are registered (memory_registration.h), and the blocks of the node heap that back them, by
// which collectives recognise such memory. Any thread may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

namespace cohort {

class RegisteredRanges {
 public:
  /// Never destroyed: registrations may be static.
  [[nodiscard]] static RegisteredRanges& of_this_process();

  RegisteredRanges(const RegisteredRanges&) = delete;
  RegisteredRanges& operator=(const RegisteredRanges&) = delete;

  /// Costs one read of a counter that hardly ever changes.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  /// Adds a range without a block. @throws InvalidArgument when it overlaps another.
  void add(std::span<const std::byte> range);

  /// Says that the range at `begin` is backed by `block` from now on, whose pages begin at `pages`.
  void set_block(const std::byte* begin, std::shared_ptr<const void> block, const std::byte* pages);

  /// Removes the range. Returns its block, null when it has none.
  [[nodiscard]] std::shared_ptr<const void> remove(const std::byte* begin) noexcept;

  /// Keeps the block of a removed range for ever, because it is still in use or backs other pages.
  void keep(std::shared_ptr<const void> block) noexcept;

  /// The heap's address of the `bytes` at `data`; null when they are not all in one range with a block.
  [[nodiscard]] const std::byte* in_heap(const std::byte* data, std::size_t bytes) const;

  /// Shared ownership of the block that backs `data`, for calls in flight; null when there is none.
  [[nodiscard]] std::shared_ptr<const void> block_of(const std::byte* data) const;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::shared_ptr<const void> block;
    const std::byte* pages = nullptr;
  };

  RegisteredRanges() = default;
  [[nodiscard]] std::vector<Range>::const_iterator find(std::uintptr_t address) const;

  mutable std::shared_mutex mutex_;
  std::vector<Range> ranges_;  ///< by address
  std::vector<std::shared_ptr<const void>> kept_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace cohort
