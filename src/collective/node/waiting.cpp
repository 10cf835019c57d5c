#include "waiting.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <thread>
#include <utility>

namespace cohort::node {
namespace {

using namespace std::chrono_literals;

/// Reading the clock costs as much as several polls, so most polls do without.
constexpr unsigned kPollsPerReading = 64;

/// Polls from one call of what is to be done meanwhile to the next; and where polls give the core away. That
/// call may give it away, too, as Open MPI's does, and then there is a poll before it is given away again.
constexpr unsigned kPollsPerCall = 16;
constexpr unsigned kYieldingPollsPerCall = 2;

constexpr auto kBetweenLooks = 1ms;

/// Longer pauses between two readings of the clock are time in which this process was suspended, and the
/// others perhaps with it. They do not count as waiting, or a suspended job would be full of late members.
constexpr auto kLongestPause = 500ms;

/// Sleep starts late and stays short against what has been waited already.
constexpr auto kUntilFirstNap = 2ms;
constexpr auto kShortestNap = 50us;
constexpr auto kLongestNap = 1ms;

void pause_once() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A processor's own pause takes from 5 to 150 ns, so the number of them is measured.
int pauses_per_crossing() {
  using Clock = std::chrono::steady_clock;
  constexpr int kMeasured = 100;
  constexpr std::chrono::nanoseconds kCrossing = 45ns;
  std::chrono::nanoseconds fastest = 1s;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kMeasured; ++i) pause_once();
    fastest = std::min<std::chrono::nanoseconds>(fastest, Clock::now() - start);
  }
  // To the nearest: a pause of 25 ns is passed twice.
  const double pauses = static_cast<double>(kMeasured * kCrossing.count()) /
                        static_cast<double>(std::max(fastest, 1ns).count());
  return static_cast<int>(std::clamp(pauses + 0.5, 1.0, 16.0));
}

// Not the private kind: sleepers may be of other processes, which see the word at other addresses.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) noexcept {
  static_assert(sizeof word == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

}  // namespace

void pause_for_a_crossing() noexcept {
  static const int pauses = pauses_per_crossing();
  for (int i = 0; i < pauses; ++i) pause_once();
}

Waiting::Clock::duration Waiting::nap() const noexcept {
  return std::clamp<Clock::duration>((now_ - started_) / 16, kShortestNap, kLongestNap);
}

bool Waiting::calls_meanwhile() const noexcept {
  const unsigned polls_per_call = yields() ? kYieldingPollsPerCall : kPollsPerCall;
  return meanwhile_ != nullptr && polls_ % polls_per_call == 1;
}

void Waiting::give_way() const {
  if (naps_) {
    std::this_thread::sleep_for(nap());
  } else if (yields() && !calls_meanwhile()) {
    ::sched_yield();
  }
}

bool Waiting::is_time_to_check() {
  ++polls_;
  if (calls_meanwhile()) meanwhile_();
  if (!naps_ && !yields() && polls_ % kPollsPerReading != 0) return false;
  const Clock::time_point before = std::exchange(now_, Clock::now());
  if (!timed_) {
    timed_ = true;
    started_ = now_;
    next_check_ = now_ + kBetweenLooks;
  } else if (now_ - before > kLongestPause) {
    started_ += now_ - before - kLongestPause;
  }
  naps_ = meanwhile_ == nullptr && now_ - started_ >= kUntilFirstNap;
  if (now_ < next_check_) return false;
  next_check_ = now_ + kBetweenLooks;
  return true;
}

Bell::Sleeper::Sleeper(Bell& bell) noexcept : bell_(bell) {
  bell_.sleepers_.fetch_add(1);
  rings_before_ = bell_.rings_.load();
}

void Bell::Sleeper::sleep(std::chrono::nanoseconds limit) const noexcept {
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  const timespec time{limit.count() / kNanosecondsPerSecond, limit.count() % kNanosecondsPerSecond};
  futex(bell_.rings_, FUTEX_WAIT, rings_before_, &time);
}

void Bell::wake_all() noexcept {
  rings_.fetch_add(1);
  futex(rings_, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr);
}

}  // namespace cohort::node
