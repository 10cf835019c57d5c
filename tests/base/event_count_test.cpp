#include <cohort/base/event_count.h>

#include <ctime>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cohort {
namespace {

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(EventCount, DoesNotWaitForWhatIsTrue) {
  EventCount events;
  events.wait_until([] { return true; });
}

TEST(EventCount, LosesNoChange) {
  constexpr int kRounds = 20'000;
  EventCount events;
  std::atomic<int> turn{0};
  const auto play = [&](int own) {
    for (int round = 0; round < kRounds; ++round) {
      events.wait_until([&] { return turn.load() % 2 == own; });
      ++turn;
      events.notify();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn, 2 * kRounds);
}

TEST(EventCount, WakesAllWhoWait) {
  EventCount events;
  std::atomic<bool> open{false};
  std::vector<std::thread> waiting;
  waiting.reserve(4);
  for (int i = 0; i < 4; ++i) waiting.emplace_back([&] { events.wait_until([&] { return open.load(); }); });
  open = true;
  events.notify();
  for (std::thread& thread : waiting) thread.join();
}

TEST(EventCount, SleepsThroughALongWait) {
  EventCount events;
  std::atomic<bool> sleeping_is_over{false};
  double used = 0;
  std::thread sleeper([&] {
    const double before = processor_seconds();
    events.wait_until([&] { return sleeping_is_over.load(); });
    used = processor_seconds() - before;
  });
  // As long as it takes, whatever else the machine does.
  const double end = processor_seconds() + 0.05;
  while (processor_seconds() < end) continue;
  sleeping_is_over = true;
  events.notify();
  sleeper.join();
  EXPECT_LT(used, 0.02);
}

}  // namespace
}  // namespace cohort
