#include "exact_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace cohort {
namespace {

constexpr int kDigitBits = 32;
constexpr std::int64_t kDigitMask = (std::int64_t{1} << kDigitBits) - 1;
constexpr std::size_t kAdditionsBeforeCarry = std::size_t{1} << 30;

// The exponents of the smallest and largest products of two numbers, and 2^62 of them.
constexpr int kLowestOfFloats = -298;
constexpr int kHighestOfFloats = 258 + 62;
constexpr int kLowestOfDoubles = -1074;
constexpr int kHighestOfDoubles = 1024 + 62;

constexpr std::size_t digits_between(int lowest, int highest) {
  return static_cast<std::size_t>(highest - lowest) / kDigitBits + 2;
}

constexpr std::size_t kMostDigits = digits_between(kLowestOfDoubles, kHighestOfDoubles);

/// Leaves 32 bits in each digit but the last, which has the sign.
void carry_digits(std::span<std::int64_t> digits) {
  for (std::size_t i = 0; i + 1 < digits.size(); ++i) {
    digits[i + 1] += digits[i] >> kDigitBits;
    digits[i] &= kDigitMask;
  }
}

/// The exact sum of both [Knuth 1969].
TwoDoubles two_sum(double a, double b) {
  const double sum = a + b;
  const double other = sum - a;
  return {sum, (a - (sum - other)) + (b - other)};
}

}  // namespace

ExactSums::ExactSums(std::size_t count, DType dtype)
    : lowest_exponent_(dtype == DType::kFloat64 ? kLowestOfDoubles : kLowestOfFloats),
      digits_(dtype == DType::kFloat64 ? digits_between(kLowestOfDoubles, kHighestOfDoubles)
                                       : digits_between(kLowestOfFloats, kHighestOfFloats)),
      count_(count),
      all_(Tensor::zeros({static_cast<std::int64_t>(count * (digits_ + 1))}, DType::kInt64)) {}

void ExactSums::add(std::size_t sum, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    ++not_finite(sum);
    return;
  }
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent != 0) mantissa |= std::uint64_t{1} << 52;
  int position = (exponent == 0 ? 1 : exponent) - 1075 - lowest_exponent_;  // of the mantissa's last bit
  if (position < 0) {
    mantissa = position <= -64 ? 0 : mantissa >> -position;
    position = 0;
  }
  const std::int64_t sign = (bits >> 63) != 0 ? -1 : 1;
  const std::size_t first = static_cast<std::size_t>(position) / kDigitBits;
  const unsigned shift = static_cast<unsigned>(position) % kDigitBits;
  const std::span<std::int64_t> own = digits(sum);
  const std::uint64_t low = mantissa << shift;
  const std::uint64_t high = shift == 0 ? 0 : mantissa >> (64 - shift);
  own[first] += sign * static_cast<std::int64_t>(low & static_cast<std::uint64_t>(kDigitMask));
  own[first + 1] += sign * static_cast<std::int64_t>(low >> kDigitBits);
  own[first + 2] += sign * static_cast<std::int64_t>(high);
  if (++since_carry_ == kAdditionsBeforeCarry) carry();
}

void ExactSums::add_square(std::size_t sum, double value) {
  const double square = value * value;
  add(sum, square);
  if (std::isfinite(square)) add(sum, std::fma(value, value, -square));
}

void ExactSums::carry() {
  for (std::size_t sum = 0; sum < count_; ++sum) carry_digits(digits(sum));
  since_carry_ = 0;
}

const Tensor& ExactSums::settled() {
  carry();
  return all_;
}

TwoDoubles ExactSums::get(std::size_t sum) const {
  if (not_finite(sum) != 0) return {std::numeric_limits<double>::quiet_NaN(), 0};
  const std::span<const std::int64_t> own = digits(sum);
  std::array<std::int64_t, kMostDigits> places;
  const std::span<std::int64_t> value(places.data(), own.size());
  std::ranges::copy(own, value.begin());
  carry_digits(value);
  const bool is_negative = value.back() < 0;
  if (is_negative) {  // the digits of its opposite, none of which is negative, shrink from the first one on
    for (std::int64_t& digit : value) digit = -digit;
    carry_digits(value);
  }
  TwoDoubles total;
  for (std::size_t i = value.size(); i-- > 0;) {
    const int exponent = static_cast<int>(i) * kDigitBits + lowest_exponent_;
    const TwoDoubles larger = two_sum(total.high, std::ldexp(static_cast<double>(value[i]), exponent));
    total = two_sum(larger.high, larger.low + total.low);
  }
  return is_negative ? TwoDoubles{-total.high, -total.low} : total;
}

}  // namespace cohort
