// A wait calls what is to be done meanwhile; a bell wakes its sleepers, in its own process and in another.
#include "collective/node/waiting.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <thread>

#include <gtest/gtest.h>

namespace cohort::node {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kVeryLong = 60s;

int calls_meanwhile = 0;

/// Calls in so many polls without success.
int calls_in(int polls, bool oversubscribed) {
  calls_meanwhile = 0;
  Waiting waiting(oversubscribed, [] { ++calls_meanwhile; });
  for (int poll = 0; poll < polls; ++poll) {
    static_cast<void>(waiting.is_time_to_check());
    waiting.give_way();
  }
  return calls_meanwhile;
}

TEST(Waiting, CallsWhatIsToBeDoneMeanwhileNowAndThen) { EXPECT_EQ(calls_in(160, false), 10); }

// The call may give the core away, as the wait does itself: never both without a poll between them.
TEST(Waiting, OfMembersThatShareCoresCallsAtEveryOtherPoll) {
  const int few = calls_in(100, true);
  EXPECT_GE(few, 48);
  EXPECT_LE(few, 50);
}

TEST(Bell, WakesWhoSleeps) {
  Bell bell;
  std::atomic<bool> awake{false};
  std::thread sleeping([&] {
    const Bell::Sleeper sleeper(bell);
    sleeper.sleep(kVeryLong);
    awake = true;
  });
  const auto start = Clock::now();
  while (!awake) bell.ring();
  sleeping.join();
  EXPECT_LT(Clock::now() - start, kVeryLong);
}

TEST(Bell, IsHeardFromTheMomentThatTheSleeperIsThere) {
  Bell bell;
  const auto start = Clock::now();
  const Bell::Sleeper sleeper(bell);
  bell.ring();  // before it falls asleep
  sleeper.sleep(kVeryLong);
  EXPECT_LT(Clock::now() - start, kVeryLong);
}

TEST(Bell, LetsTheSleeperWakeByItself) {
  Bell bell;
  bell.ring();  // no sleeper yet
  const auto start = Clock::now();
  const Bell::Sleeper sleeper(bell);
  sleeper.sleep(2ms);
  EXPECT_GE(Clock::now() - start, 2ms);
}

TEST(Bell, IsHeardInOtherProcesses) {
  struct Shared {
    Bell bell;
    std::atomic<bool> awake{false};
  };
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& shared = *new (memory) Shared;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Bell::Sleeper sleeper(shared.bell);
    sleeper.sleep(kVeryLong);
    shared.awake = true;
    ::_exit(0);
  }
  const auto start = Clock::now();
  while (!shared.awake && Clock::now() - start < kVeryLong) shared.bell.ring();
  EXPECT_LT(Clock::now() - start, kVeryLong / 2);
  ::waitpid(child, nullptr, 0);
  ::munmap(memory, sizeof(Shared));
}

}  // namespace
}  // namespace cohort::node
