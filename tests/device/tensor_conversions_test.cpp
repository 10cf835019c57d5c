// Casting and filling: every dtype against every other.
#include <limits>

#include <gmock/gmock.h>

#include <cohort/device/tensor.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;

/// Values that every dtype of kind `dtype` holds exactly.
std::vector<double> small_values(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  const bool is_unsigned = to_string(dtype).starts_with("uint");
  std::vector<double> values{0, 1, 2, 100, 127};
  if (!is_unsigned) values.insert(values.end(), {-1, -100});
  if (is_floating(dtype)) values.insert(values.end(), {0.5, -1.25});
  return values;
}

Tensor tensor_of(DType dtype, const std::vector<double>& values) {
  Tensor tensor = Tensor::uninitialized({static_cast<std::int64_t>(values.size())}, dtype);
  for (std::size_t i = 0; i < values.size(); ++i) tensor.row(static_cast<std::int64_t>(i)).fill(values[i]);
  return tensor;
}

/// What C++ makes of a small value that becomes an element of `dtype`.
double converted(double value, DType dtype) {
  return visit_dtype(dtype, [&]<class T>(std::type_identity<T>) -> double {
    if constexpr (std::is_same_v<T, bool>)
      return value != 0 ? 1 : 0;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<double>(static_cast<T>(static_cast<std::int64_t>(value)));
    else
      return value;
  });
}

TEST(Cast, BetweenAllDtypesKeepsSmallValues) {
  for (const DType from : kAllDTypes) {
    const std::vector<double> values = small_values(from);
    const Tensor source = tensor_of(from, values);
    for (const DType to : kAllDTypes) {
      const bool would_be_negative = to_string(to).starts_with("uint") && is_floating(from);
      const Tensor cast = source.cast(to);
      ASSERT_EQ(cast.dtype(), to);
      ASSERT_EQ(cast.shape(), source.shape());
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (would_be_negative && values[i] <= -1) continue;  // C++ leaves it open
        EXPECT_EQ(cast.row(static_cast<std::int64_t>(i)).item<double>(), converted(values[i], to))
            << values[i] << " from " << to_string(from) << " to " << to_string(to);
      }
    }
  }
}

TEST(Cast, ToTheSameDtypeIsTheSameTensor) {
  const Tensor tensor = Tensor::from({1.0f, 2.0f});
  EXPECT_EQ(tensor.cast(DType::kFloat32).data(), tensor.data());
}

TEST(Cast, LeavesTheSourceAlone) {
  const Tensor tensor = Tensor::from({1.5, 2.5});
  tensor.cast(DType::kFloat32).fill(0);
  EXPECT_THAT(tensor.span<double>(), ElementsAre(1.5, 2.5));
}

TEST(Cast, OfIntegersToNarrowerOnesWraps) {
  EXPECT_EQ(Tensor::from<std::int64_t>({300}).cast(DType::kUInt8).item<int>(), 44);
  EXPECT_EQ(Tensor::from<std::int32_t>({-1}).cast(DType::kUInt16).item<int>(), 65535);
  EXPECT_EQ(Tensor::from<std::uint64_t>({std::numeric_limits<std::uint64_t>::max()})
                .cast(DType::kInt64)
                .item<int>(),
            -1);
}

TEST(Cast, RoundsToSixteenBitFloats) {
  EXPECT_EQ(Tensor::from({2049.0f}).cast(DType::kFloat16).item<float>(), 2048);
  EXPECT_EQ(Tensor::from({2051.0f}).cast(DType::kFloat16).item<float>(), 2052);
  EXPECT_EQ(Tensor::from({257.0f}).cast(DType::kBFloat16).item<float>(), 256);
  EXPECT_EQ(Tensor::from({1e6f}).cast(DType::kFloat16).item<float>(), std::numeric_limits<float>::infinity());
}

TEST(Cast, OfNothingIsNothing) {
  EXPECT_EQ(Tensor::zeros({0, 3}, DType::kInt8).cast(DType::kFloat64).shape(), (Shape{0, 3}));
}

TEST(Fill, WritesEveryElementOfItsViewAndNoOther) {
  for (const DType dtype : kAllDTypes) {
    const Tensor tensor = Tensor::zeros({3, 5}, dtype);
    tensor.row(1).fill(1);
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 5; ++column) {
        EXPECT_EQ(tensor.row(row).row(column).item<double>(), row == 1 ? 1 : 0) << to_string(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace cohort
