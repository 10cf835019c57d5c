#include <cohort/base/event_count.h>

#include <chrono>
#include <thread>

namespace cohort {
namespace {

/// About what falling asleep and being woken cost together: who sleeps later than that has lost no more than
/// who sleeps at once would have.
constexpr std::chrono::microseconds kLongestSpin{50};

}  // namespace

void EventCount::wait_for_change(std::uint32_t seen) const noexcept {
  const auto sleep_at = std::chrono::steady_clock::now() + kLongestSpin;
  do {
    if (count_.load() != seen) return;
    // Where threads outnumber cores, the one that is waited for may need this very core.
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < sleep_at);
  count_.wait(seen);
}

}  // namespace cohort
