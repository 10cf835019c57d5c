#include "base/quiet_thread.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <limits>
#include <set>
#include <stop_token>
#include <thread>

#include <gmock/gmock.h>

namespace cohort {
namespace {

using Seconds = std::chrono::duration<double>;
using ::testing::ElementsAre;

/// Signals that the calling thread takes, apart from the two that the C library keeps for itself.
std::set<int> taken_signals() {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  std::set<int> taken;
  for (int signal = 1; signal <= SIGRTMAX; ++signal)
    if ((signal < 32 || signal >= SIGRTMIN) && sigismember(&blocked, signal) == 0) taken.insert(signal);
  return taken;
}

TEST(QuietThread, TakesNothingButItsOwnFaults) {
  const std::set<int> before = taken_signals();
  std::set<int> taken;
  {
    const std::jthread thread = start_quiet_thread([&] { taken = taken_signals(); });
  }
  EXPECT_THAT(taken, ElementsAre(SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGSTOP, SIGSYS));
  EXPECT_EQ(taken_signals(), before) << "the thread's maker has changed";
}

std::atomic<int> g_handled{0};

TEST(QuietThread, LeavesSignalsOfTheProcessToTheProgram) {
  const std::jthread thread = start_quiet_thread(
      [](const std::stop_token& stop) { static_cast<void>(sleep_unless_stopped(Seconds(60), stop)); });
  const auto before = std::signal(SIGUSR1, [](int) { ++g_handled; });
  sigset_t usual;
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &usr1, &usual);
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  const timespec limit{.tv_sec = 0, .tv_nsec = 50'000'000};
  EXPECT_EQ(::sigtimedwait(&usr1, nullptr, &limit), SIGUSR1) << "another thread has taken it";
  EXPECT_EQ(g_handled, 0);
  ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);
  std::signal(SIGUSR1, before);
}

TEST(SleepUnlessStopped, SleepsForAsLongAsItIsTold) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(sleep_unless_stopped(Seconds(0.02), {}));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_TRUE(sleep_unless_stopped(Seconds(0), {}));
}

TEST(SleepUnlessStopped, EndsWhenStopIsRequested) {
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<bool> slept{true};
    {
      const std::jthread thread = start_quiet_thread([&](const std::stop_token& stop) {
        slept = sleep_unless_stopped(Seconds(std::numeric_limits<double>::max()), stop);
      });
      if (round % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    ASSERT_FALSE(slept);
  }
}

TEST(SleepUnlessStopped, DoesNotBeginAfterTheEnd) {
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(sleep_unless_stopped(Seconds(60), source.get_token()));
}

}  // namespace
}  // namespace cohort
