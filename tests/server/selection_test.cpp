// What an Index selects, of a whole tensor and of one in shards, and which positions a slice means.
#include <limits>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/server/shard_layout.h>
#include <cohort/server/slice.h>

#include "server/shards/selection.h"
#include "sharded_tensor.h"

namespace cohort {
namespace {

// What an Index selects of a whole tensor and of one in shards, against single elements.

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// Elements 0, 1, 2, ...
Tensor counted(const Shape& shape, DType dtype = DType::kInt32) {
  std::vector<std::int32_t> values(shape.elements());
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from(values, shape).cast(dtype);
}

Tensor selected(const Tensor& tensor, const Index& index) {
  const Selection selection = select(index, tensor.shape());
  Tensor result = Tensor::uninitialized(selection.shape, tensor.dtype());
  copy_selected(tensor, selection.axes, result.raw());
  return result;
}

TEST(Select, TakesNumbersSlicesEllipsesAndNewAxes) {
  const Tensor tensor = counted({4, 3});
  EXPECT_TRUE(bitwise_equal(selected(tensor, {}), tensor));
  EXPECT_TRUE(bitwise_equal(selected(tensor, {1}), Tensor::from({3, 4, 5})));
  EXPECT_TRUE(bitwise_equal(selected(tensor, {-1, -1}), Tensor::scalar(11)));
  EXPECT_TRUE(bitwise_equal(selected(tensor, {Ellipsis{}, 1}), Tensor::from({1, 4, 7, 10})));
  EXPECT_TRUE(bitwise_equal(selected(tensor, {1, Ellipsis{}, 1}), Tensor::scalar(4)));
  EXPECT_TRUE(bitwise_equal(selected(tensor, {Slice{.begin = 2}, Slice{.end = 1}}),
                            Tensor::from(std::vector{6, 9}, {2, 1})));
  EXPECT_TRUE(bitwise_equal(selected(tensor, {Slice{.step = -3}, 0}), Tensor::from({9, 0})));
  EXPECT_TRUE(bitwise_equal(selected(tensor, {NewAxis{}, 3}), Tensor::from(std::vector{9, 10, 11}, {1, 3})));
  EXPECT_TRUE(bitwise_equal(selected(tensor, {0, Ellipsis{}, NewAxis{}}),
                            Tensor::from(std::vector{0, 1, 2}, {3, 1})));
  EXPECT_TRUE(bitwise_equal(selected(counted({}), {Ellipsis{}, NewAxis{}}), Tensor::from({0})));
}

TEST(Select, GivesEmptyTensorsTheirOtherAxes) {
  EXPECT_EQ(selected(counted({4, 3}), {Slice{.begin = 3, .end = 1}}).shape(), (Shape{0, 3}));
  EXPECT_EQ(selected(counted({4, 3}), {Slice{}, Slice{.begin = 7}}).shape(), (Shape{4, 0}));
  EXPECT_EQ(selected(counted({0, 3}), {Slice{}, 1}).shape(), (Shape{0}));
}

TEST(Select, RefusesWhatDoesNotFitTheShape) {
  const auto selecting = [](const Index& index) { return [index] { return select(index, {10, 3}); }; };
  const auto refused = [](const char* what) {
    return ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(what), HasSubstr("[10, 3]")));
  };
  EXPECT_THAT(selecting({10}), refused("index 10 is out of range for axis 0"));
  EXPECT_THAT(selecting({Ellipsis{}, -4}), refused("index -4 is out of range for axis 1"));
  EXPECT_THAT(selecting({0, 0, Slice{}}), refused("3 numbers and slices"));
  EXPECT_THAT(selecting({Ellipsis{}, 0, Ellipsis{}}), refused("several Ellipses"));
  EXPECT_THAT(selecting({Slice{.step = 0}}), ThrowsMessage<InvalidArgument>(HasSubstr("step 0")));
}

class RandomIndices : public ::testing::Test {
 protected:
  int draw(int lowest, int highest) { return std::uniform_int_distribution<int>(lowest, highest)(random_); }

  Slice slice() {
    Slice slice{.step = draw(0, 1) == 0 ? draw(1, 3) : draw(-3, -1)};
    if (draw(0, 1) == 0) slice.begin = draw(-8, 8);
    if (draw(0, 1) == 0) slice.end = draw(-8, 8);
    return slice;
  }

  /// Terms for some of the axes of `shape`, which are not empty.
  Index index(const Shape& shape) {
    Index index;
    const int named = draw(0, shape.rank());
    const int before = draw(0, named);
    for (int term = 0; term < named; ++term) {
      if (term == before) index.emplace_back(Ellipsis{});
      if (draw(0, 4) == 0) index.emplace_back(NewAxis{});
      // Behind the Ellipsis stand the last axes.
      const int axis = term < before ? term : shape.rank() - named + term;
      const int extent = static_cast<int>(shape[axis]);
      index.push_back(draw(0, 1) == 0 ? IndexTerm(slice()) : IndexTerm(draw(-extent, extent - 1)));
    }
    return index;
  }

 private:
  std::mt19937 random_{3};
};

/// Element by element: which element of `tensor` stands at each place of the result.
std::vector<std::int32_t> elements_of(const Tensor& tensor, const Selection& selection) {
  std::vector<std::int64_t> places = {0};
  for (int axis = 0; axis < tensor.shape().rank(); ++axis) {
    const AxisRange& range = selection.axes[static_cast<std::size_t>(axis)];
    std::vector<std::int64_t> finer;
    for (const std::int64_t place : places) {
      for (std::int64_t index = 0; index < range.count; ++index) {
        finer.push_back(place * tensor.shape()[axis] + range[index]);
      }
    }
    places = finer;
  }
  return {places.begin(), places.end()};
}

TEST_F(RandomIndices, TakeTheSameOfShardsAsOfTheWhole) {
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(draw(1, 3)));
    for (std::int64_t& extent : extents) extent = draw(1, 6);
    const Tensor tensor = counted(Shape(extents), draw(0, 1) == 0 ? DType::kInt32 : DType::kInt16);
    const Index index = this->index(tensor.shape());
    const Tensor whole = selected(tensor, index);
    const std::vector<std::int32_t> expected = elements_of(tensor, select(index, tensor.shape()));
    const Tensor values = whole.cast(DType::kInt32);
    ASSERT_TRUE(std::ranges::equal(values.span<std::int32_t>(), expected)) << whole;
    const ShardLayout layout(extents.front(), draw(1, 7));
    ASSERT_TRUE(bitwise_equal(ShardedTensor(tensor, layout).at(index), whole)) << to_string(layout);
  }
}

TEST(MarkedRows, AreThoseOfTheMask) {
  EXPECT_THAT(marked_rows(Tensor::from({true, false, true}), 3), ElementsAre(0, 2));
  EXPECT_THAT(marked_rows(Tensor::from({false, false}), 2), IsEmpty());
}

TEST(MarkedRows, RefuseMasksOfOtherShapesAndTypes) {
  EXPECT_THAT(
      [] {
        return marked_rows(Tensor::from({true, false}), 3);
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("bool[2]"), HasSubstr("bool[3]"))));
  EXPECT_THAT(
      [] {
        return marked_rows(Tensor::from({1, 0, 1}), 3);
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("int32[3]")));
}

// Which positions a slice means.

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
