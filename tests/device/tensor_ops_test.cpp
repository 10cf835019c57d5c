#include <cohort/device/tensor_ops.h>

#include <limits>
#include <vector>

#include <gmock/gmock.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// first, first+1, ... in the given shape.
Tensor counting(Shape shape, std::int32_t first = 0, DType dtype = DType::kInt32) {
  const Tensor tensor = Tensor::uninitialized(shape, DType::kInt32);
  for (std::int32_t& value : tensor.span<std::int32_t>()) value = first++;
  return tensor.cast(dtype);
}

Tensor joined(std::initializer_list<Tensor> parts, int axis) {
  return concatenate(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

Tensor sum(const Tensor& tensor, std::vector<int> axes) { return sum_along(tensor, axes); }

TEST(Concatenate, PutsPartsOneAfterTheOtherAlongAnyAxis) {
  const Tensor a = counting({2, 3});
  const Tensor b = counting({2, 3}, 10);
  EXPECT_THAT(joined({a, b}, 0).span<std::int32_t>(), ElementsAre(0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15));
  EXPECT_EQ(joined({a, b}, 0).shape(), (Shape{4, 3}));
  EXPECT_THAT(joined({a, b}, 1).span<std::int32_t>(), ElementsAre(0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15));
  EXPECT_EQ(joined({a, b}, 1).shape(), (Shape{2, 6}));
  EXPECT_TRUE(bitwise_equal(joined({a, b}, -1), joined({a, b}, 1)));
  EXPECT_TRUE(bitwise_equal(joined({a, b}, -2), joined({a, b}, 0)));
}

TEST(Concatenate, AgreesWithWalkingEveryIndex) {
  const Tensor a = counting({2, 3, 4});
  for (int axis = 0; axis < 3; ++axis) {
    const Tensor b = counting(a.shape().with(axis, 2), 100);
    const Tensor result = joined({a, b}, axis);
    for (int i = 0; i < result.shape()[0]; ++i) {
      for (int j = 0; j < result.shape()[1]; ++j) {
        for (int k = 0; k < result.shape()[2]; ++k) {
          std::vector<std::int64_t> index{i, j, k};
          auto& along = index[static_cast<std::size_t>(axis)];
          const bool in_a = along < a.shape()[axis];
          if (!in_a) along -= a.shape()[axis];
          EXPECT_EQ(result.row(i).row(j).row(k).item<int>(),
                    (in_a ? a : b).row(index[0]).row(index[1]).row(index[2]).item<int>());
        }
      }
    }
  }
}

TEST(Concatenate, TakesPartsOfDifferentLengthAlsoEmptyOnes) {
  const Tensor result = joined({counting({1, 2}), counting({0, 2}), counting({3, 2}, 2)}, 0);
  EXPECT_EQ(result.shape(), (Shape{4, 2}));
  EXPECT_THAT(result.span<std::int32_t>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  const Tensor wide = joined({counting({2, 1}), counting({2, 0}), counting({2, 2}, 5)}, 1);
  EXPECT_THAT(wide.span<std::int32_t>(), ElementsAre(0, 5, 6, 1, 7, 8));
  EXPECT_EQ(joined({counting({0, 2}), counting({0, 2})}, 0).shape(), (Shape{0, 2}));
  EXPECT_EQ(joined({counting({0, 2}), counting({0, 5})}, 1).shape(), (Shape{0, 7}));
}

TEST(Concatenate, MovesEveryDtype) {
  for (const DType dtype : kAllDTypes) {
    const Tensor part = counting({3}, 1, dtype);
    const Tensor result = joined({part, part.rows(0, 1)}, 0);
    EXPECT_EQ(result.dtype(), dtype);
    EXPECT_TRUE(bitwise_equal(result.rows(0, 3), part));
    EXPECT_TRUE(bitwise_equal(result.rows(3, 4), part.rows(0, 1)));
  }
}

TEST(Concatenate, CopiesAlsoASinglePart) {
  const Tensor part = counting({3});
  EXPECT_NE(joined({part}, 0).data(), part.data());
  EXPECT_TRUE(bitwise_equal(joined({part}, 0), part));
}

TEST(Concatenate, NamesThePartThatDoesNotFit) {
  EXPECT_THAT(
      [] {
        return joined({counting({2, 3}), counting({5, 3}), counting({2, 4})}, 0);
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("shape mismatch: part 2 is int32[2, 4], part 0 is int32[2, 3]"),
                HasSubstr("only axis 0 may differ"))));
  EXPECT_THROW(static_cast<void>(joined({counting({2}), counting({2, 1})}, 0)), InvalidArgument) << "rank";
  EXPECT_THROW(static_cast<void>(joined({counting({2}), counting({2}, 0, DType::kInt64)}, 0)),
               InvalidArgument)
      << "dtype";
}

TEST(Concatenate, RefusesNothingScalarsAndAnAxisOutOfRange) {
  EXPECT_THROW(static_cast<void>(joined({}, 0)), InvalidArgument);
  EXPECT_THAT(
      [] {
        return joined({Tensor::scalar(1.0f), Tensor::scalar(2.0f)}, 0);
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("reshape them to [1]")));
  EXPECT_THROW(static_cast<void>(joined({counting({2}), counting({2})}, 1)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(joined({counting({2}), counting({2})}, -2)), InvalidArgument);
}

TEST(Stack, MakesTensorsTheRowsOfANewOne) {
  const std::vector<Tensor> rows{counting({2}), counting({2}, 10), counting({2}, 20)};
  EXPECT_EQ(stack_tensors(rows).shape(), (Shape{3, 2}));
  EXPECT_THAT(stack_tensors(rows).span<std::int32_t>(), ElementsAre(0, 1, 10, 11, 20, 21));
  const std::vector<Tensor> scalars{Tensor::scalar(1.0f), Tensor::scalar(2.0f)};
  EXPECT_EQ(stack_tensors(scalars).shape(), Shape{2});
  const std::vector<Tensor> empty(4, Tensor::zeros({0, 3}, DType::kBool));
  EXPECT_EQ(stack_tensors(empty).shape(), (Shape{4, 0, 3}));
}

TEST(Stack, NamesTheRowThatDiffers) {
  const std::vector<Tensor> rows{counting({2}), counting({2}), counting({3})};
  EXPECT_THAT(
      [&] { return stack_tensors(rows); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("int32[3] (row 2)"), HasSubstr("int32[2] (row 0)"))));
  EXPECT_THROW(static_cast<void>(stack_tensors({})), InvalidArgument);
}

TEST(SumAlong, MakesTheAxesDisappear) {
  const Tensor matrix = counting({2, 3}, 1, DType::kFloat32);  // [[1,2,3],[4,5,6]]
  EXPECT_THAT(sum(matrix, {0}).span<double>(), ElementsAre(5, 7, 9));
  EXPECT_THAT(sum(matrix, {1}).span<double>(), ElementsAre(6, 15));
  EXPECT_THAT(sum(matrix, {-1}).span<double>(), ElementsAre(6, 15));
  EXPECT_EQ(sum(matrix, {0, 1}).shape(), Shape());
  EXPECT_EQ(sum(matrix, {1, 0}).item<double>(), 21);
  EXPECT_THAT(sum(matrix, {}).span<double>(), ElementsAre(1, 2, 3, 4, 5, 6)) << "no axis: nothing to add";
}

TEST(SumAlong, WalksTensorsOfManyAxes) {
  const Tensor cube = counting({2, 3, 4});
  EXPECT_EQ(sum(cube, {1}).shape(), (Shape{2, 4}));
  EXPECT_THAT(sum(cube, {1}).span<std::int64_t>(), ElementsAre(12, 15, 18, 21, 48, 51, 54, 57));
  EXPECT_THAT(sum(cube, {0, 2}).span<std::int64_t>(), ElementsAre(60, 92, 124));
}

TEST(SumAlong, OfNoElementsIsZero) {
  const Tensor none = Tensor::zeros({0, 3}, DType::kFloat16);
  EXPECT_THAT(sum(none, {0}).span<double>(), ElementsAre(0, 0, 0));
  EXPECT_EQ(sum(none, {1}).shape(), Shape{0});
}

TEST(SumAlong, IsWideAndThereforeLosesNothing) {
  for (const DType dtype : kAllDTypes) {
    const Tensor ones = Tensor::full({1000}, dtype, 1);
    const Tensor total = sum(ones, {0});
    EXPECT_EQ(total.dtype(), is_floating(dtype) ? DType::kFloat64 : DType::kInt64) << to_string(dtype);
    EXPECT_EQ(total.item<int>(), 1000) << to_string(dtype);
  }
}

TEST(SumAlong, WrapsSixtyFourBitIntegers) {
  const auto largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(sum(Tensor::from<std::int64_t>({largest, 1}), {0}).item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min());
}

TEST(SumAlong, NamesAnAxisThatIsWrongOrGivenTwice) {
  const Tensor matrix = counting({2, 3});
  EXPECT_THAT([&] { return sum(matrix, {2}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("axis 2 is out of range")));
  EXPECT_THAT(
      [&] {
        return sum(matrix, {1, -1});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("axis -1 is named twice")));
  EXPECT_THROW(static_cast<void>(sum(Tensor::scalar(1.0f), {0})), InvalidArgument);
}

}  // namespace
}  // namespace cohort
