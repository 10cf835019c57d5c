// Threads wait on an EventCount until other threads have made a condition true. A waiter polls for a while,
// yielding its core in between, and then sleeps: a change that comes soon is seen within a microsecond, and a
// long wait costs no processor time. Where other programs take the yielded cores, waiters sleep at once. Any
// thread may wait or notify. The EventCount must outlive every call of notify, even when the waiter has
// already gone on.
//
//     ready.store(true);                              events.wait_until([&] { return ready.load(); });
//     events.notify();
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cohort {

class EventCount {
 public:
  /// Says that something has changed, after it has.
  void notify() {
    count_.fetch_add(1);
    if (sleepers_.load() > 0) wake_all();
  }

  /// Returns once `condition()` is true. It is called after each notification, and must read atomically.
  template <class Condition>
  void wait_until(Condition condition) {
    while (true) {
      const std::uint32_t seen = count_.load();
      if (condition()) return;
      wait_for_change(seen);
    }
  }

 private:
  void wait_for_change(std::uint32_t seen);
  void sleep(std::uint32_t seen);
  void wake_all();

  std::atomic<std::uint32_t> count_{0};
  std::atomic<int> waits_asleep_{0};  ///< how many of the next waits go to sleep at once
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;  ///< held while falling asleep, so that no wake-up is lost
  std::condition_variable changed_;
};

}  // namespace cohort
