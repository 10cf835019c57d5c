#include <cohort/base/event_count.h>

#include <chrono>
#include <thread>
#include <utility>

namespace cohort {
namespace {

/// About the cost of falling asleep and being woken: a thread that spins that long first loses no more than
/// one that sleeps at once.
constexpr std::chrono::microseconds kLongestSpin{50};

/// Threads that work together return a core sooner than this. Another program keeps a core for milliseconds,
/// but loses it at once to a thread that wakes up: then sleeping is faster, and is done for a while.
constexpr std::chrono::microseconds kLongYield{500};
constexpr int kWaitsAsleep = 128;

}  // namespace

void EventCount::wait_for_change(std::uint32_t seen) {
  using Clock = std::chrono::steady_clock;
  if (waits_asleep_.load(std::memory_order_relaxed) > 0) {
    waits_asleep_.fetch_sub(1, std::memory_order_relaxed);
    return sleep(seen);
  }
  Clock::time_point now = Clock::now();
  const Clock::time_point sleep_at = now + kLongestSpin;
  while (count_.load() == seen) {
    if (now >= sleep_at) return sleep(seen);
    // Where threads outnumber cores, the thread that is waited for may need this core.
    std::this_thread::yield();
    const Clock::time_point before = std::exchange(now, Clock::now());
    if (now - before > kLongYield) waits_asleep_.store(kWaitsAsleep, std::memory_order_relaxed);
  }
}

// A sleeper registers in `sleepers_` and then reads `count_`; a notifier changes `count_` and then reads
// `sleepers_`. So at least one of the two sees the other.
void EventCount::sleep(std::uint32_t seen) {
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1);
  changed_.wait(lock, [&] { return count_.load() != seen; });
  sleepers_.fetch_sub(1);
}

void EventCount::wake_all() {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

}  // namespace cohort
