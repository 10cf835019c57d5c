#include <cohort/base/input_wait.h>

#include <array>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;

void pass(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

TEST(InputWait, AddsUpWhatThreadsWait) {
  const std::uint64_t before = InputWait::total();
  std::array<std::thread, 3> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([] {
      const InputWait wait;
      pass(1ms);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(InputWait::total() - before, 3'000'000u);
}

TEST(InputWait, CountsTheOutermostOfAThreadOnly) {
  const std::uint64_t before = InputWait::total();
  {
    const InputWait outer;
    {
      const InputWait inner;
      pass(1ms);
    }
    EXPECT_EQ(InputWait::total(), before);
  }
  const std::uint64_t once = InputWait::total() - before;
  EXPECT_GE(once, 1'000'000u);
  pass(1ms);
  EXPECT_EQ(InputWait::total(), before + once);
}

}  // namespace
}  // namespace cohort
