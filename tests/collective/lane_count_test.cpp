// How many lanes are chosen for what was measured.
#include "collective/network/lane_count.h"

#include <vector>

#include <gtest/gtest.h>

#include "collective/network/cost_model.h"

namespace cohort::network {
namespace {

constexpr double kGamma = 0.1e-9;

/// A link of so many seconds per byte, of which one member fills only a part.
std::vector<LaneRate> rates_of(double link, double of_one_member, int most) {
  std::vector<LaneRate> rates;
  for (int lanes = 1; lanes <= most; lanes *= 2)
    rates.push_back({lanes, std::max(link, of_one_member / lanes)});
  return rates;
}

int lanes_for(double link, double of_one_member, int most = 64) {
  return choose_lanes(rates_of(link, of_one_member, most), kGamma).lanes;
}

TEST(LaneCount, IsOneWhereOneMemberFillsTheLink) {
  EXPECT_EQ(lanes_for(0.8e-9, 0.8e-9), 1) << "10 Gbit/s";
  EXPECT_EQ(lanes_for(8e-9, 8e-9), 1);
}

TEST(LaneCount, GrowsUntilTheLinkIsFull) {
  EXPECT_EQ(lanes_for(0.4e-9, 1.6e-9), 4);
  EXPECT_EQ(lanes_for(0.4e-9, 6.4e-9), 16);
  EXPECT_EQ(lanes_for(0.4e-9, 6.4e-9, 8), 8) << "the node has no more members";
}

TEST(LaneCount, SharesTheReductionWhereTheLinkIsFast) {
  EXPECT_EQ(lanes_for(0.08e-9, 0.08e-9), kBuiltInLanes) << "100 Gbit/s, which one member fills";
}

TEST(LaneCount, IsTheFewestThatIsNearTheBest) {
  const auto choose = [](std::vector<LaneRate> rates) { return choose_lanes(rates, 0).lanes; };
  EXPECT_EQ(choose({{1, 1.09}, {2, 1.0}, {4, 1.05}}), 1);
  EXPECT_EQ(choose({{1, 1.11}, {2, 1.0}, {4, 1.0}}), 2);
  EXPECT_EQ(choose({{1, 1.0}, {2, 1.3}, {4, 2.0}}), 1) << "more lanes get in each other's way";
  EXPECT_EQ(choose({{3, 7.0}}), 3);
}

TEST(LaneCount, NeedsNoMeasurementOfMoreOnceTheyGainNothing) {
  const auto may_gain = [](std::vector<LaneRate> rates) { return may_gain_from_more_lanes(rates, 0); };
  EXPECT_TRUE(may_gain({}));
  EXPECT_TRUE(may_gain({{1, 1.0}})) << "one alone says nothing";
  EXPECT_TRUE(may_gain({{1, 1.0}, {2, 0.9}}));
  EXPECT_FALSE(may_gain({{1, 1.0}, {2, 0.97}}));
  EXPECT_FALSE(may_gain({{1, 1.0}, {2, 1.2}}));
  EXPECT_TRUE(may_gain_from_more_lanes(std::vector<LaneRate>{{1, 0.08e-9}, {2, 0.08e-9}}, kGamma))
      << "the members reduce side by side";
}

TEST(LaneCount, ComesFromTheTable) {
  TuningTable table;
  EXPECT_EQ(lanes_of(table), kBuiltInLanes);
  for (const double value : {1.0, 3.0, 3.7}) {
    table.set(Figure::kLanes, value, TuningSource::kFile);
    EXPECT_EQ(lanes_of(table), static_cast<int>(value));
  }
  table.set(Figure::kLanes, 0.3, TuningSource::kFile);
  EXPECT_EQ(lanes_of(table), 1);
  table.set(Figure::kLanes, 1e300, TuningSource::kFile);
  EXPECT_GT(lanes_of(table), 1000);
}

}  // namespace
}  // namespace cohort::network
