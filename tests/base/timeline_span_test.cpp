#include <cohort/base/timeline_span.h>

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timeline_spans.h"

namespace cohort {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

class TimelineSpanTest : public testing::Test {
 protected:
  TimelineSpanTest() { spans.keep(true); }
  ~TimelineSpanTest() override { spans.keep(false); }

  TimelineSpans& spans = TimelineSpans::of_this_process();
};

TEST_F(TimelineSpanTest, IsKeptWhenItEnds) {
  {
    const TimelineSpan outer("step");
    const TimelineSpan inner("augment");
    EXPECT_THAT(spans.take(10), IsEmpty());
  }
  const std::vector<FinishedSpan> found = spans.take(10);
  ASSERT_THAT(found, ElementsAre(Field(&FinishedSpan::name, "augment"), Field(&FinishedSpan::name, "step")));
  EXPECT_LE(found[1].begin, found[0].begin);
  EXPECT_LE(found[0].begin, found[0].end);
  EXPECT_LE(found[0].end, found[1].end);
  EXPECT_THAT(spans.take(10), IsEmpty());
}

TEST_F(TimelineSpanTest, BelongsToItsThread) {
  { const TimelineSpan span("here"); }
  std::thread([] { const TimelineSpan span("there"); }).join();
  { const TimelineSpan span("here"); }
  const std::vector<FinishedSpan> found = spans.take(10);
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_NE(found[0].thread, found[1].thread);
  EXPECT_EQ(found[0].thread, found[2].thread);
}

TEST_F(TimelineSpanTest, IsForgottenWhereNobodyWantsAny) {
  spans.keep(false);
  { const TimelineSpan span("unseen"); }
  {
    const TimelineSpan span("begun before");
    spans.keep(true);
  }
  EXPECT_THAT(spans.take(10), IsEmpty());
}

TEST_F(TimelineSpanTest, IsCountedWhenThereIsNoRoomLeft) {
  constexpr int kTooMany = 70'000;
  for (int i = 0; i < kTooMany; ++i) const TimelineSpan span("short");
  EXPECT_THAT(spans.take(1000), SizeIs(1000));
  const std::size_t kept = 1000 + spans.take(kTooMany).size();
  EXPECT_GT(spans.lost(), 0u);
  EXPECT_EQ(kept + spans.lost(), static_cast<std::size_t>(kTooMany));
}

TEST_F(TimelineSpanTest, KeepsTheBeginOfALongName) {
  { const TimelineSpan span(std::string(100, 'x')); }
  EXPECT_THAT(spans.take(10), ElementsAre(Field(&FinishedSpan::name, std::string(63, 'x'))));
}

}  // namespace
}  // namespace cohort
