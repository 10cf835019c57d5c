#include <cohort/base/deadline.h>

#include <limits>

#include <gmock/gmock.h>

#include "base/clocks.h"

namespace cohort {
namespace {

using Seconds = std::chrono::duration<double>;

TEST(Deadline, NeverExpires) {
  EXPECT_TRUE(Deadline::never().is_never());
  EXPECT_FALSE(Deadline::never().expired());
}

TEST(Deadline, OfZeroOrLessIsNever) {
  for (const double seconds : {0.0, -1.0, -std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(Deadline::after(Seconds(seconds)).is_never()) << seconds;
  }
}

TEST(Deadline, BeyondWhatTheClockCanCountIsNever) {
  for (const double seconds :
       {1e12, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(Deadline::after(Seconds(seconds)).is_never()) << seconds;
  }
}

TEST(Deadline, LiesItsTimeoutAhead) {
  const auto before = Deadline::Clock::now();
  const Deadline deadline = Deadline::after(Seconds(3600));
  const auto after = Deadline::Clock::now();
  EXPECT_GE(deadline.at(), before + std::chrono::hours(1));
  EXPECT_LE(deadline.at(), after + std::chrono::hours(1));
  EXPECT_FALSE(deadline.is_never());
  EXPECT_FALSE(deadline.expired());
}

TEST(Deadline, ExpiresWhenItsTimeHasCome) {
  const Deadline deadline = Deadline::after(Seconds(1e-6));
  while (Deadline::Clock::now() < deadline.at()) {
  }
  EXPECT_TRUE(deadline.expired());
}

TEST(Deadline, CanBePostponed) {
  const Deadline deadline = Deadline::after(Seconds(1));
  EXPECT_EQ(deadline.plus(std::chrono::seconds(2)).at(), deadline.at() + std::chrono::seconds(2));
  EXPECT_TRUE(Deadline::never().plus(std::chrono::seconds(2)).is_never());
}

TEST(GraceTime, IsShorterWhereTheDeadlineIsShort) {
  using namespace std::chrono_literals;
  EXPECT_EQ(grace_time(500ms, 60s), 500ms);
  EXPECT_EQ(grace_time(500ms, 250ms), 500ms);
  EXPECT_EQ(grace_time(500ms, 200ms), 400ms);
  EXPECT_EQ(grace_time(500ms, 100ms), 200ms);
  EXPECT_EQ(grace_time(2s, 1ms), 800ms) << "others need the core";
  EXPECT_EQ(grace_time(500ms, 0s), 500ms) << "no deadline";
}

}  // namespace
}  // namespace cohort
