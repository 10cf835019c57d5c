// How a member passes the time until others have done their part: it polls, then gives its core away after
// each poll (Waiting), then sleeps until the one that it waits for rings (Bell). So waiting costs a
// microsecond of latency at first and hardly any processor time later.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <cohort/base/monotonic_clock.h>

namespace cohort::node {

/// Spins for about one cache-line transfer between cores, before the first poll and between polls. A poll
/// that comes too early takes the cache line away from the member that is about to write it, and costs both a
/// transfer: 64 B between two members take 0.13 us with these pauses, 0.18 without. By the processor's own
/// pauses: reading its clock in a loop was slower on an EPYC whenever crossings took longer than usual.
void pause_for_a_crossing() noexcept;

/// One wait: how long it has lasted, and what to do between two polls.
class Waiting {
 public:
  using Clock = MonotonicClock;

  /// Where members outnumber cores, the one that is waited for may need this very core. `meanwhile`, if there
  /// is one, is called between polls; such a wait never sleeps.
  explicit Waiting(bool oversubscribed, void (*meanwhile)() = nullptr) noexcept
      : polls_before_yielding_(oversubscribed ? kFewPolls : kManyPolls), meanwhile_(meanwhile) {}

  /// Between two polls without success: gives the core away or sleeps, if it is time for that.
  void give_way() const;

  /// Whether the wait has lasted so long that `give_way` sleeps.
  [[nodiscard]] bool naps() const noexcept { return naps_; }

  /// How long to sleep next.
  [[nodiscard]] Clock::duration nap() const noexcept;

  /// Counts a poll without success. True when it is time to look for a reason to give up.
  [[nodiscard]] bool is_time_to_check();

  /// For how long, not counting time in which this process was suspended.
  [[nodiscard]] std::chrono::duration<double> waited() const noexcept { return now_ - started_; }

 private:
  static constexpr unsigned kFewPolls = 4;
  static constexpr unsigned kManyPolls = 20'000;

  /// Whether polls give the core away by now.
  [[nodiscard]] bool yields() const noexcept { return polls_ >= polls_before_yielding_; }
  /// Whether `meanwhile` is called at this poll.
  [[nodiscard]] bool calls_meanwhile() const noexcept;

  unsigned polls_before_yielding_;
  void (*meanwhile_)();
  unsigned polls_ = 0;
  bool timed_ = false;
  bool naps_ = false;
  Clock::time_point started_;
  Clock::time_point now_;
  Clock::time_point next_check_;
};

/// Wakes members that have polled for too long. Each member owns a Bell and rings it after every flag that it
/// raises; waiters sleep on it (futex). Ringing costs one relaxed load when nobody sleeps.
///
/// Nothing orders a ring and a waiter that is about to fall asleep, since every ring would pay for the fence.
/// A sleeper that misses a ring sleeps until the limit that it has set itself. Sleepers and the ringer may be
/// of different processes.
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
