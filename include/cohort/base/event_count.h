// An EventCount is where threads wait until others have made something true. They look for
// it again and again for a while, giving their core away in between, and then sleep: a
// change that comes soon is seen within a microsecond, and one that does not costs no
// processor time. Where other programs take the cores that are given away, they sleep at
// once. Any threads may wait and notify. It outlives every call of notify, also those whose waiter has
// gone on.
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

  /// Returns once `condition()` is true; it is looked at after each notification, by atomic reads.
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
  std::mutex mutex_;  ///< of the falling asleep: whoever wakes comes before it or after it
  std::condition_variable changed_;
};

}  // namespace cohort
