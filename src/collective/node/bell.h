// How a member that has waited for long sleeps until the one that it waits for has done
// more. The bell lies in the control block of that one, who rings it with everything that it does:
// that costs a read of a line that hardly ever changes, as long as nobody sleeps.
//
// Nothing orders the ring and the falling asleep, which would cost every ring a fence. A
// sleeper that is missed so sleeps until the limit that it has set itself. Sleepers and
// ringer may be of different processes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cohort::node {

class Bell {
 public:
  /// Wakes all who sleep.
  void ring() noexcept {
    if (sleepers_.load(std::memory_order_relaxed) != 0) wake_all();
  }

  /// One who is about to sleep, and looks once more before.
  class Sleeper {
   public:
    explicit Sleeper(Bell& bell) noexcept;
    ~Sleeper() { bell_.sleepers_.fetch_sub(1, std::memory_order_relaxed); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Returns at the first ring since this object was made, or after `limit`.
    void sleep(std::chrono::nanoseconds limit) const noexcept;

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
