// Which rows lie in which shard, against a list that names the shard of every row.
#include <cohort/server/shard_layout.h>

#include <limits>
#include <random>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// All rows of a layout, one after the other.
std::vector<ShardRow> rows_of(const std::vector<std::int64_t>& extents) {
  std::vector<ShardRow> rows;
  for (std::size_t shard = 0; shard < extents.size(); ++shard) {
    for (std::int64_t row = 0; row < extents[shard]; ++row) rows.push_back({static_cast<int>(shard), row});
  }
  return rows;
}

class RandomLayouts : public ::testing::Test {
 protected:
  int draw(int lowest, int highest) { return std::uniform_int_distribution<int>(lowest, highest)(random_); }

  /// Nearly equal shards half of the time, otherwise any, empty ones too.
  ShardLayout layout() {
    if (draw(0, 1) == 0) return {draw(0, 40), draw(1, 9)};
    std::vector<std::int64_t> extents(static_cast<std::size_t>(draw(1, 9)));
    for (std::int64_t& extent : extents) extent = std::max(0, draw(-2, 6));
    return ShardLayout(extents);
  }

 private:
  std::mt19937 random_{7};
};

TEST(ShardLayout, MakesTheFirstShardsARowLonger) {
  EXPECT_THAT(ShardLayout(13, 5).extents(), ElementsAre(3, 3, 3, 2, 2));
  EXPECT_THAT(ShardLayout(10, 4).extents(), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(ShardLayout(2, 3).extents(), ElementsAre(1, 1, 0));
  EXPECT_THAT(ShardLayout(0, 1).extents(), ElementsAre(0));
  EXPECT_EQ(to_string(ShardLayout(10, 4)), "[3, 3, 2, 2]");
}

// The rule as it is written in formulae elsewhere; files of shards depend on it.
TEST(ShardLayout, FollowsTheDivRule) {
  for (std::int64_t rows = 1; rows <= 30; ++rows) {
    for (int shards = 1; shards <= rows; ++shards) {
      const ShardLayout layout(rows, shards);
      const std::int64_t base = rows / shards;
      const std::int64_t extra = rows % shards;
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t owner = std::max(row / (base + 1), (row - extra) / base);
        const std::int64_t local = owner < extra ? row % (base + 1) : (row - extra) % base;
        ASSERT_EQ(layout.find(row), (ShardRow{static_cast<int>(owner), local})) << row << " of " << rows;
      }
    }
  }
}

TEST_F(RandomLayouts, FindEveryRow) {
  for (int trial = 0; trial < 500; ++trial) {
    const ShardLayout layout = this->layout();
    const std::vector<ShardRow> rows = rows_of(layout.extents());
    ASSERT_EQ(layout.rows(), std::ssize(rows));
    for (std::int64_t row = 0; row < layout.rows(); ++row) {
      const ShardRow place = layout.find(row);
      ASSERT_EQ(place, rows[static_cast<std::size_t>(row)]) << "row " << row << " of " << to_string(layout);
      ASSERT_EQ(layout.range(place.shard).begin + place.row, row);
    }
  }
}

TEST_F(RandomLayouts, SplitListsOfRowsAndKeepTheirPositions) {
  for (int trial = 0; trial < 500; ++trial) {
    const ShardLayout layout = this->layout();
    const std::vector<ShardRow> places = rows_of(layout.extents());
    if (places.empty()) continue;
    std::vector<std::int32_t> rows(static_cast<std::size_t>(draw(0, 30)));
    for (std::int32_t& row : rows) row = draw(0, static_cast<int>(places.size()) - 1);

    std::vector<ShardRows> expected;
    for (int shard = 0; shard < layout.shards(); ++shard) {
      ShardRows part{.shard = shard};
      for (std::size_t position = 0; position < rows.size(); ++position) {
        const ShardRow place = places[static_cast<std::size_t>(rows[position])];
        if (place.shard != shard) continue;
        part.rows.push_back(place.row);
        part.positions.push_back(static_cast<std::int64_t>(position));
      }
      if (!part.rows.empty()) expected.push_back(part);
    }
    ASSERT_EQ(layout.split(rows), expected) << to_string(layout);
    const std::vector<std::int64_t> wide(rows.begin(), rows.end());
    ASSERT_EQ(layout.split(wide), expected) << to_string(layout);
  }
}

TEST_F(RandomLayouts, SplitSlices) {
  for (int trial = 0; trial < 3000; ++trial) {
    const ShardLayout layout = this->layout();
    const std::vector<ShardRow> places = rows_of(layout.extents());
    const int step = draw(0, 1) == 0 ? draw(1, 5) : draw(-5, -1);
    const AxisRange range =
        Slice{.begin = draw(-45, 45), .end = draw(-45, 45), .step = step}.on(layout.rows());

    std::vector<ShardRow> expected;
    for (std::int64_t index = 0; index < range.count; ++index) {
      expected.push_back(places[static_cast<std::size_t>(range[index])]);
    }
    std::vector<ShardRow> got;
    int previous = -1;
    for (const ShardRange& part : layout.split(range)) {
      ASSERT_NE(part.shard, previous) << "a shard is named once";
      ASSERT_EQ(part.position, std::ssize(got));
      ASSERT_GT(part.rows.count, 0);
      previous = part.shard;
      for (std::int64_t index = 0; index < part.rows.count; ++index) {
        got.push_back({part.shard, part.rows[index]});
      }
    }
    ASSERT_EQ(got, expected) << to_string(layout);
  }
}

TEST(ShardLayout, SplitsRangesOfTheFarthestSteps) {
  const ShardLayout layout(10, 4);
  for (const std::int64_t step :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_THAT(layout.split(AxisRange{4, step, 1}), ElementsAre(ShardRange{1, {1, step, 1}, 0}));
    EXPECT_THROW((void)layout.split(AxisRange{4, step, 2}), InvalidArgument);
  }
  EXPECT_THAT(layout.split(AxisRange{}), IsEmpty());
}

TEST(ShardLayout, RefusesRowsThatDoNotExist) {
  const ShardLayout layout(10, 4);
  EXPECT_THAT([&] { return layout.find(10); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("row 10"), HasSubstr("10 rows"))));
  EXPECT_THROW((void)layout.find(-1), InvalidArgument);
  EXPECT_THAT(
      [&] {
        return layout.split(std::vector<std::int32_t>{9, 0, -3});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("row -3"), HasSubstr("position 2"))));
  EXPECT_THAT(
      [&] {
        return layout.split(AxisRange{8, 1, 3});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("3 rows from 8 on in steps of 1")));
  EXPECT_THROW((void)layout.split(AxisRange{1, -1, 3}), InvalidArgument);
  EXPECT_THROW((void)layout.split(AxisRange{1, 0, 3}), InvalidArgument);
  EXPECT_THROW((void)layout.split(AxisRange{-1, 1, 3}), InvalidArgument);
  EXPECT_THROW((void)layout.range(4), InvalidArgument);
}

TEST(ShardLayout, RefusesLayoutsThatAreNone) {
  EXPECT_THROW(ShardLayout(-1, 2), InvalidArgument);
  EXPECT_THROW(ShardLayout(4, 0), InvalidArgument);
  EXPECT_THROW(ShardLayout(std::vector<std::int64_t>{}), InvalidArgument);
  EXPECT_THAT(
      [] {
        ShardLayout(std::vector<std::int64_t>{2, -1});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("[2, -1]")));
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(ShardLayout(std::vector<std::int64_t>{kMost, 1}), InvalidArgument);
}

}  // namespace
}  // namespace cohort
