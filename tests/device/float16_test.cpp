#include <cohort/device/float16.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>

namespace cohort {
namespace {

/// How a 16-bit format divides its bits.
template <class T>
struct Format;
template <>
struct Format<float16> {
  static constexpr int kMantissaBits = 10;
  static constexpr int kBias = 15;
};
template <>
struct Format<bfloat16> {
  static constexpr int kMantissaBits = 7;
  static constexpr int kBias = 127;
};

template <class T>
constexpr std::uint32_t kInfinityBits = 0x7fffu >> Format<T>::kMantissaBits << Format<T>::kMantissaBits;

/// The value of a positive pattern by the definition of the format; the pattern of infinity
/// stands for the number that would follow the largest one.
template <class T>
double value_by_definition(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> Format<T>::kMantissaBits);
  const auto mantissa = static_cast<double>(bits & ((1u << Format<T>::kMantissaBits) - 1));
  const double hidden = exponent == 0 ? 0 : std::ldexp(1.0, Format<T>::kMantissaBits);
  return std::ldexp(hidden + mantissa, std::max(exponent, 1) - Format<T>::kBias - Format<T>::kMantissaBits);
}

/// The nearest pattern, found by search; of two equally near ones, the even.
template <class T>
std::uint32_t nearest_by_search(double magnitude) {
  static const std::vector<double> values = [] {
    std::vector<double> all;
    for (std::uint32_t bits = 0; bits <= kInfinityBits<T>; ++bits)
      all.push_back(value_by_definition<T>(bits));
    return all;
  }();
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.begin()) return 0;
  if (above == values.end()) return kInfinityBits<T>;
  const auto upper = static_cast<std::uint32_t>(above - values.begin());
  const double to_upper = *above - magnitude;
  const double to_lower = magnitude - *(above - 1);
  if (to_upper == to_lower) return upper % 2 == 0 ? upper : upper - 1;
  return to_upper < to_lower ? upper : upper - 1;
}

template <class T>
void expect_nearest(float value) {
  const auto sign = static_cast<std::uint32_t>(std::signbit(value) ? 0x8000 : 0);
  ASSERT_EQ(T(value).bits(), sign | nearest_by_search<T>(std::fabs(static_cast<double>(value))))
      << "converting " << value << ", bits " << std::hex << std::bit_cast<std::uint32_t>(value);
}

template <class T>
class SixteenBitFloat : public ::testing::Test {};
using SixteenBitFloats = ::testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(SixteenBitFloat, SixteenBitFloats);

TYPED_TEST(SixteenBitFloat, HasTheValueThatItsFormatDefines) {
  for (std::uint32_t bits = 0; bits < kInfinityBits<TypeParam>; ++bits) {
    const auto positive = static_cast<float>(TypeParam::from_bits(static_cast<std::uint16_t>(bits)));
    const auto negative = static_cast<float>(TypeParam::from_bits(static_cast<std::uint16_t>(bits | 0x8000)));
    ASSERT_EQ(static_cast<double>(positive), value_by_definition<TypeParam>(bits)) << std::hex << bits;
    ASSERT_EQ(negative, -positive) << std::hex << bits;
    ASSERT_TRUE(std::signbit(negative)) << std::hex << bits;
  }
}

TYPED_TEST(SixteenBitFloat, SurvivesTheWayThroughFloat32) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto original = TypeParam::from_bits(static_cast<std::uint16_t>(bits));
    const auto wide = static_cast<float>(original);
    if ((bits & 0x7fff) > kInfinityBits<TypeParam>) {
      ASSERT_TRUE(std::isnan(wide)) << std::hex << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(wide)))) << std::hex << bits;
      ASSERT_EQ(TypeParam(wide).bits() & 0x8000, bits & 0x8000) << "sign of NaN " << std::hex << bits;
    } else {
      ASSERT_EQ(TypeParam(wide).bits(), bits) << std::hex << bits;
    }
  }
}

TYPED_TEST(SixteenBitFloat, RoundsToNearestEvenAroundEveryTie) {
  for (std::uint32_t bits = 0; bits < kInfinityBits<TypeParam>; ++bits) {
    const double low = value_by_definition<TypeParam>(bits);
    const double high = value_by_definition<TypeParam>(bits + 1);
    const auto tie = static_cast<float>(low + (high - low) / 2);
    ASSERT_EQ(static_cast<double>(tie), low + (high - low) / 2) << "float32 must hold the tie exactly";
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e38f)}) {
      expect_nearest<TypeParam>(value);
      expect_nearest<TypeParam>(-value);
    }
  }
}

TYPED_TEST(SixteenBitFloat, RoundsAnyFloat32ToTheNearest) {
  std::mt19937 random(1);
  for (int i = 0; i < 500'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) expect_nearest<TypeParam>(value);
  }
}

TYPED_TEST(SixteenBitFloat, OverflowsToInfinity) {
  const auto largest = value_by_definition<TypeParam>(kInfinityBits<TypeParam> - 1);
  const auto next = value_by_definition<TypeParam>(kInfinityBits<TypeParam>);
  const auto tie = static_cast<float>(largest + (next - largest) / 2);
  EXPECT_EQ(TypeParam(tie).bits(), kInfinityBits<TypeParam>);
  EXPECT_EQ(TypeParam(std::nextafter(tie, 0.0f)).bits(), kInfinityBits<TypeParam> - 1);
  EXPECT_EQ(TypeParam(-std::numeric_limits<float>::max()).bits(), kInfinityBits<TypeParam> | 0x8000);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::infinity()).bits(), kInfinityBits<TypeParam>);
}

TYPED_TEST(SixteenBitFloat, KeepsEveryNaNANaN) {
  // Also those whose payload lies in the bits that are cut off.
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffc01234u}) {
    const TypeParam converted(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(static_cast<float>(converted))) << std::hex << bits;
  }
}

TYPED_TEST(SixteenBitFloat, IsZeroByDefault) { EXPECT_EQ(TypeParam().bits(), 0); }

}  // namespace
}  // namespace cohort
