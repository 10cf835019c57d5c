#include "waiting.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace cohort::node {
namespace {

using namespace std::chrono_literals;

/// Reading the clock costs as much as several polls, so most polls do without.
constexpr unsigned kPollsPerReading = 64;

constexpr auto kBetweenLooks = 1ms;

/// Naps start late and stay short against what has been waited already.
constexpr auto kUntilFirstNap = 2ms;
constexpr auto kShortestNap = 50us;
constexpr auto kLongestNap = 1ms;

}  // namespace

void Waiting::give_way() {
  if (naps_) {
    std::this_thread::sleep_for(
        std::clamp<Clock::duration>((now_ - started_) / 16, kShortestNap, kLongestNap));
  } else if (polls_ >= polls_before_yielding_) {
    ::sched_yield();
  }
}

bool Waiting::is_time_to_look() {
  ++polls_;
  if (!naps_ && polls_ < polls_before_yielding_ && polls_ % kPollsPerReading != 0) return false;
  now_ = Clock::now();
  if (!timed_) {
    timed_ = true;
    started_ = now_;
    next_look_ = now_ + kBetweenLooks;
  }
  naps_ = now_ - started_ >= kUntilFirstNap;
  if (now_ < next_look_) return false;
  next_look_ = now_ + kBetweenLooks;
  return true;
}

}  // namespace cohort::node
