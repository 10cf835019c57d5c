// The chief and the other worker of these tests are one process, so their clocks are the same, and answers
// that come late are wrong by half the time that they took.
#include "observation/chief_clock.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;

class ChiefClockTest : public testing::Test {
 protected:
  /// The worker asks; the answer comes after `time_of_question` and `time_of_answer`.
  void ask(std::chrono::microseconds time_of_question, std::chrono::microseconds time_of_answer) {
    own.ask_if_due();
    ASSERT_EQ(to_chief.size(), 1u);
    pass(time_of_question);
    ASSERT_TRUE(chief.hear(to_chief.front()));
    to_chief.clear();
    pass(time_of_answer);
    ASSERT_TRUE(own.hear(to_own.front()));
    to_own.clear();
  }

  static void pass(std::chrono::microseconds time) {
    const std::int64_t end = ChiefClock::now() + time / 1ns;
    while (ChiefClock::now() < end) continue;
  }

  std::vector<std::string> to_chief;
  std::vector<std::string> to_own;
  ChiefClock chief{0, true, [this](int worker, std::string note) {
                     EXPECT_EQ(worker, 5);
                     to_own.push_back(std::move(note));
                   }};
  ChiefClock own{5, false, [this](int worker, std::string note) {
                   EXPECT_EQ(worker, 0);
                   to_chief.push_back(std::move(note));
                 }};
};

TEST_F(ChiefClockTest, KnowsNothingBeforeTheFirstAnswer) {
  EXPECT_FALSE(own.offset().has_value());
  EXPECT_EQ(own.to_chief(7), 7);
  own.ask_if_due();
  EXPECT_FALSE(own.offset().has_value());
  own.wait_until_known(1ms);
  EXPECT_FALSE(own.offset().has_value());
}

TEST_F(ChiefClockTest, IsTheSameOnTheChiefsHost) {
  EXPECT_EQ(chief.offset()->offset, 0);
  EXPECT_EQ(chief.offset()->error, 0);
  EXPECT_EQ(chief.to_chief(7), 7);
  chief.ask_if_due();
  EXPECT_TRUE(to_own.empty());
}

TEST_F(ChiefClockTest, IsWrongByNoMoreThanItSays) {
  for (const auto& [question, answer] :
       {std::pair(900us, 100us), std::pair(100us, 900us), std::pair(50us, 50us)}) {
    ask(question, answer);
    const ClockOffset offset = own.offset().value();
    EXPECT_LE(std::abs(offset.offset), offset.error);
  }
  // The fastest of the three, and what this process had to wait for.
  ask(0us, 0us);
  EXPECT_LT(own.offset()->error, 10'000'000);
}

TEST_F(ChiefClockTest, LeavesTimesInTheirOrderWhenItLearns) {
  std::vector<std::int64_t> times;
  const auto note = [&] { times.push_back(ChiefClock::now()); };
  note();
  for (const auto& [question, answer] :
       {std::pair(2000us, 100us), std::pair(50us, 900us), std::pair(300us, 10us)}) {
    note();
    ask(question, answer);
    note();
  }
  for (std::size_t i = 1; i < times.size(); ++i)
    EXPECT_LE(own.to_chief(times[i - 1]), own.to_chief(times[i])) << i;
}

TEST_F(ChiefClockTest, AsksAgainOnlyNowAndThen) {
  for (int i = 0; i < 5; ++i) ask(0us, 0us);
  own.ask_if_due();
  EXPECT_TRUE(to_chief.empty());
}

TEST_F(ChiefClockTest, LeavesOtherNotesToOthers) {
  EXPECT_FALSE(own.hear("something"));
  EXPECT_FALSE(own.hear(std::string(32, 'x')));
}

}  // namespace
}  // namespace cohort
