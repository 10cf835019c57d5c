// An EventCount is where threads wait until others have made something true. They look for
// it again and again for a while, giving their core away in between, and then sleep: a
// change that comes soon is seen within a microsecond, and one that does not costs no
// processor time. Any threads may wait and notify.
//
//     ready.store(true);                              events.wait_until([&] { return ready.load(); });
//     events.notify();
#pragma once

#include <atomic>
#include <cstdint>

namespace cohort {

class EventCount {
 public:
  /// Says that something has changed, after it has.
  void notify() noexcept {
    count_.fetch_add(1);
    count_.notify_all();
  }

  /// Returns once `condition()` is true; it is looked at after each notification, by atomic reads.
  template <class Condition>
  void wait_until(Condition condition) const {
    while (true) {
      const std::uint32_t seen = count_.load();
      if (condition()) return;
      wait_for_change(seen);
    }
  }

 private:
  void wait_for_change(std::uint32_t seen) const noexcept;

  std::atomic<std::uint32_t> count_{0};
};

}  // namespace cohort
