// Which positions a slice means.
#include <cohort/server/slice.h>

#include <limits>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::int64_t> positions(const AxisRange& range) {
  std::vector<std::int64_t> positions;
  for (std::int64_t index = 0; index < range.count; ++index) positions.push_back(range[index]);
  return positions;
}

/// The same, position by position: an end that is left out lies beyond the axis.
std::vector<std::int64_t> walked(const Slice& slice, std::int64_t extent) {
  constexpr std::int64_t kFar = 1000;
  const auto counted = [&](std::int64_t place) { return place < 0 ? place + extent : place; };
  const std::int64_t begin = slice.begin ? counted(*slice.begin) : (slice.step > 0 ? -kFar : kFar);
  const std::int64_t end = slice.end ? counted(*slice.end) : (slice.step > 0 ? kFar : -kFar);
  // The first position is the nearest on the axis from `begin` on.
  std::int64_t place = slice.step > 0 ? std::max<std::int64_t>(begin, 0) : std::min(begin, extent - 1);
  std::vector<std::int64_t> positions;
  for (; slice.step > 0 ? place < end : place > end; place += slice.step) {
    if (place < 0 || place >= extent) break;
    positions.push_back(place);
  }
  return positions;
}

TEST(Slice, MeansWhatWalkingTheAxisGives) {
  for (std::int64_t extent = 0; extent <= 5; ++extent) {
    for (std::int64_t step = -7; step <= 7; ++step) {
      if (step == 0) continue;
      for (std::int64_t begin = -8; begin <= 8; ++begin) {
        for (std::int64_t end = -8; end <= 8; ++end) {
          // 8 stands for an end that is left out.
          const Slice slice{.begin = begin == 8 ? std::nullopt : std::optional(begin),
                            .end = end == 8 ? std::nullopt : std::optional(end),
                            .step = step};
          ASSERT_EQ(positions(slice.on(extent)), walked(slice, extent))
              << begin << ":" << end << ":" << step << " of " << extent;
        }
      }
    }
  }
}

TEST(Slice, TakesTheFarthestEndsAndSteps) {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((Slice{.begin = kLowest, .end = kHighest}.on(3)), (AxisRange{0, 1, 3}));
  EXPECT_EQ((Slice{.begin = kHighest, .end = kLowest, .step = -1}.on(3)), (AxisRange{2, -1, 3}));
  EXPECT_EQ((Slice{.step = kHighest}.on(3)), (AxisRange{0, kHighest, 1}));
  EXPECT_EQ((Slice{.step = kLowest}.on(3)), (AxisRange{2, kLowest, 1}));
  EXPECT_EQ((Slice{.step = kLowest}.on(kHighest).count), 1);
}

TEST(Slice, RefusesTheStep0) {
  EXPECT_THAT([] { return Slice{.step = 0}.on(3); }, ThrowsMessage<InvalidArgument>(HasSubstr("step 0")));
}

}  // namespace
}  // namespace cohort
