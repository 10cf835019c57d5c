// Wakes members that have polled for too long. Each member owns a Bell and rings it after every flag that it
// raises; waiters sleep on it (futex). Ringing costs one relaxed load when nobody sleeps.
//
// Nothing orders a ring and a waiter that is about to fall asleep, since every ring would pay for the fence.
// A sleeper that misses a ring sleeps until the limit that it has set itself. Sleepers and the ringer may be
// of different processes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cohort::node {

class Bell {
 public:
  /// Wakes all sleepers.
  void ring() noexcept {
    if (sleepers_.load(std::memory_order_relaxed) != 0) wake_all();
  }

  /// A waiter that is about to sleep. Between the constructor and `sleep` it checks its condition once more.
  class Sleeper {
   public:
    explicit Sleeper(Bell& bell) noexcept;
    ~Sleeper() { bell_.sleepers_.fetch_sub(1, std::memory_order_relaxed); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Returns at the first ring since this object was made, or after `limit`.
    void sleep(std::chrono::nanoseconds limit) const noexcept;

    /// How often the bell has rung while somebody slept, as its owner's thread sees it.
    [[nodiscard]] std::uint32_t rings() const noexcept {
      return bell_.rings_.load(std::memory_order_relaxed);
    }

   private:
    Bell& bell_;
    std::uint32_t rings_before_;
  };

 private:
  void wake_all() noexcept;

  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> rings_{0};
};

}  // namespace cohort::node
