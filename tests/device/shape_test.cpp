#include <cohort/device/shape.h>

#include <limits>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Shape, OfNoExtentsIsAScalar) {
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape().elements(), 1u);
  EXPECT_EQ(to_string(Shape()), "[]");
}

TEST(Shape, CountsItsElements) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.elements(), 24u);
  EXPECT_THAT(shape.extents(), ElementsAre(2, 3, 4));
  EXPECT_EQ(to_string(shape), "[2, 3, 4]");
}

TEST(Shape, MayBeEmptyAlongAnyAxis) {
  EXPECT_EQ((Shape{0}.elements()), 0u);
  EXPECT_EQ((Shape{3, 0, 5}.elements()), 0u);
}

TEST(Shape, RefusesNegativeExtents) {
  EXPECT_THAT(([] {
                return Shape{2, -1};
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("[2, -1] has a negative")));
  EXPECT_THROW((Shape{0, -1}), InvalidArgument);
}

TEST(Shape, RefusesMoreElementsThanCanBeCounted) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 32;
  EXPECT_THAT(([] { return Shape{kHalf, kHalf}; }), ThrowsMessage<InvalidArgument>(HasSubstr("2^63-1")));
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((Shape{kLargest}.elements()), static_cast<std::size_t>(kLargest));
}

TEST(Shape, RefusesMoreAxesThanTensorsHave) {
  EXPECT_EQ(Shape(std::vector<std::int64_t>(8, 1)).rank(), 8);
  EXPECT_THAT([] { return Shape(std::vector<std::int64_t>(9, 1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has 9 axes; tensors have at most 8")));
}

TEST(Shape, CountsNegativeAxesFromTheEnd) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(shape.normalize_axis(-1), 2);
  EXPECT_EQ(shape.normalize_axis(1), 1);
}

TEST(Shape, NamesAnAxisThatItDoesNotHave) {
  const Shape shape{2, 3};
  for (const int axis : {2, -3}) {
    EXPECT_THAT([&] { return shape[axis]; },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("axis " + std::to_string(axis)),
                                                     HasSubstr("rank 2"), HasSubstr("[2, 3]"))));
  }
  EXPECT_THROW(static_cast<void>(Shape()[0]), InvalidArgument) << "a scalar has no axis";
  EXPECT_THROW(static_cast<void>(Shape()[-1]), InvalidArgument);
}

TEST(Shape, IsChangedByMakingAnotherOne) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.with(1, 7), (Shape{2, 7, 4}));
  EXPECT_EQ(shape.with(-1, 0), (Shape{2, 3, 0}));
  EXPECT_EQ(shape.without(0), (Shape{3, 4}));
  EXPECT_EQ(shape.without(-1), (Shape{2, 3}));
  EXPECT_EQ(shape, (Shape{2, 3, 4}));
  EXPECT_EQ(shape.with(1, 7).elements(), 56u);
  EXPECT_EQ(shape.without(1).elements(), 8u);
  EXPECT_THROW(static_cast<void>(shape.with(3, 1)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(shape.with(0, -1)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(shape.without(-4)), InvalidArgument);
}

TEST(Shape, KnowsTheShapeOfItsRows) {
  EXPECT_EQ((Shape{2, 3, 4}.row()), (Shape{3, 4}));
  EXPECT_EQ((Shape{5}.row()), Shape());
  EXPECT_EQ((Shape{0, 3}.row()), (Shape{3}));
  EXPECT_THAT([] { return Shape().row(); }, ThrowsMessage<InvalidArgument>(HasSubstr("scalar")));
}

TEST(Shape, EqualsOnlyTheSameExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{6}));
  EXPECT_NE((Shape{1}), Shape());
}

}  // namespace
}  // namespace cohort
