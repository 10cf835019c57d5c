#include "batch_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/strategy/strategy.h>

#include "strategy/collective_scopes.h"

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

namespace {

Tensor zeros_of(std::size_t channels) {
  return Tensor::zeros({static_cast<std::int64_t>(channels)}, DType::kFloat64);
}

/// Means and sums of squared deviations of so many rows, per channel.
struct Deviations {
  double rows = 0;
  std::span<double> means;
  std::span<double> squares;
};

void add_own(const Deviations& sums, const Tensor& rows, const Channels& channels) {
  visit_floating_elements(rows, [&]<class T>(std::type_identity<T>) {
    const T* const values = rows.span<T>().data();
    double* const means = sums.means.data();
    double* const squares = sums.squares.data();
    channels.for_each([&](std::size_t c, std::size_t i) { means[c] += convert_element<double>(values[i]); });
    for (double& mean : sums.means) mean /= sums.rows;
    channels.for_each([&](std::size_t c, std::size_t i) {
      const double deviation = convert_element<double>(values[i]) - means[c];
      squares[c] += deviation * deviation;
    });
  });
}

/// Formulas (2.1) of Chan, Golub and LeVeque.
void merge(Deviations& all, const Deviations& more) {
  if (more.rows == 0) return;
  const double rows = all.rows + more.rows;
  for (std::size_t c = 0; c < all.means.size(); ++c) {
    const double delta = more.means[c] - all.means[c];
    all.squares[c] += more.squares[c] + delta * delta * (all.rows * more.rows / rows);
    all.means[c] += delta * (more.rows / rows);
  }
  all.rows = rows;
}

BatchMoments moments_of(const Deviations& sums) {
  BatchMoments moments{static_cast<std::int64_t>(sums.rows), zeros_of(sums.means.size()),
                       zeros_of(sums.means.size())};
  if (moments.rows == 0) return moments;
  for (std::size_t c = 0; c < sums.means.size(); ++c) {
    moments.mean.span<double>()[c] = sums.means[c];
    moments.variance.span<double>()[c] = sums.squares[c] / sums.rows;
  }
  return moments;
}

/// One replica's contribution as one tensor: rows, means, squares.
Deviations deviations_in(const Tensor& packed) {
  const std::span<double> numbers = packed.span<double>();
  const std::size_t channels = (numbers.size() - 1) / 2;
  return {numbers[0], numbers.subspan(1, channels), numbers.subspan(1 + channels)};
}

/// The mean of the squares less the square of the mean, in twice the digits of a double.
double variance_of(const TwoDoubles& sum, const TwoDoubles& squares, double rows) {
  const double mean = sum.high / rows;
  const double rest = (std::fma(-mean, rows, sum.high) + sum.low) / rows;  // of the mean
  const double product = sum.high * mean;
  const double error = std::fma(sum.high, mean, -product) + sum.high * rest + sum.low * mean;
  return std::max(((squares.high - product) + (squares.low - error)) / rows, 0.0);
}

}  // namespace

BatchOfReplicas::BatchOfReplicas(const ReplicaContext& replica, const Variable& moving_mean,
                                 BatchStatistics statistics)
    : replica_(replica),
      moving_mean_(moving_mean),
      alone_(statistics == BatchStatistics::kOwnReplica || replica.num_replicas_in_sync() == 1),
      exact_(replica.communicator().options().reproducible) {}

template <class Call>
void BatchOfReplicas::together(Call&& call) const {
  static constexpr std::uint64_t kNormalizes = fingerprint_of("batch normalization");
  const std::uint64_t number = moving_mean_.state()->number();
  PurposeOf purpose(Fingerprint().add(kNormalizes).add(number).value(), Caller::kReplica, replica_.device(),
                    [&] {
                      return PurposeWords{"normalizes a batch for " + moving_mean_.name(),
                                          fmt::format("variable number {}", number)};
                    });
  ReplicaCollective collective(replica_.strategy().extended(), current_mode().local_replica, {}, purpose);
  call(collective.communicator());
}

Tensor BatchOfReplicas::gathered(const Tensor& own) const {
  Tensor all;
  together([&](Communicator& communicator) {
    const auto elements = static_cast<std::int64_t>(own.elements());
    all = Tensor::uninitialized({communicator.size(), elements}, own.dtype(), communicator.device());
    communicator.all_gather(own.to(communicator.device()), all);
  });
  return all.on_host();
}

Tensor BatchOfReplicas::summed(const Tensor& own) const {
  if (alone_) return own;
  Tensor sum;
  together([&](Communicator& communicator) {
    sum = own.to(communicator.device());
    communicator.all_reduce(sum, ReduceOp::kSum);
  });
  return sum.on_host();
}

BatchMoments BatchOfReplicas::moments(const Tensor& own_rows, const Channels& channels) const {
  return exact_ ? exact_moments(own_rows, channels) : merged_moments(own_rows, channels);
}

BatchMoments BatchOfReplicas::merged_moments(const Tensor& own_rows, const Channels& channels) const {
  const Tensor packed = zeros_of(1 + 2 * channels.count);
  packed.span<double>()[0] = static_cast<double>(channels.rows());
  if (channels.rows() > 0) add_own(deviations_in(packed), own_rows, channels);
  if (alone_) return moments_of(deviations_in(packed));
  const Tensor all = gathered(packed);
  Deviations merged = deviations_in(all.row(0));
  for (std::int64_t replica = 1; replica < all.shape()[0]; ++replica)
    merge(merged, deviations_in(all.row(replica)));
  return moments_of(merged);
}

BatchMoments BatchOfReplicas::exact_moments(const Tensor& own_rows, const Channels& channels) const {
  // After the sums and the squares of the channels: the number of rows.
  const std::size_t count = channels.count;
  ExactSums sums(2 * count + 1, own_rows.dtype());
  visit_floating_elements(own_rows, [&]<class T>(std::type_identity<T>) {
    const T* const values = own_rows.span<T>().data();
    channels.for_each([&](std::size_t c, std::size_t i) {
      sums.add(c, convert_element<double>(values[i]));
      sums.add_square(count + c, convert_element<double>(values[i]));
    });
  });
  sums.add(2 * count, static_cast<double>(channels.rows()));
  sums.take(summed(sums.settled()));

  const double rows = sums.get(2 * count).high;
  BatchMoments moments{static_cast<std::int64_t>(rows), zeros_of(count), zeros_of(count)};
  if (moments.rows == 0) return moments;
  for (std::size_t c = 0; c < count; ++c) {
    const TwoDoubles sum = sums.get(c);
    moments.mean.span<double>()[c] = sum.high / rows;
    moments.variance.span<double>()[c] = variance_of(sum, sums.get(count + c), rows);
  }
  return moments;
}

BatchOfReplicas::GradientSums BatchOfReplicas::gradient_sums(const Tensor& gradient, const Tensor& own_rows,
                                                             const Tensor& mean,
                                                             const Channels& channels) const {
  if (exact_) return exact_gradient_sums(gradient, own_rows, mean, channels);
  const Tensor own = Tensor::zeros({2, static_cast<std::int64_t>(channels.count)}, DType::kFloat64);
  visit_floating_elements(own_rows, [&]<class T>(std::type_identity<T>) {
    const T* const values = own_rows.span<T>().data();
    const T* const slopes = gradient.span<T>().data();
    const double* const means = mean.span<double>().data();
    double* const sums = own.span<double>().data();
    double* const products = sums + channels.count;
    channels.for_each([&](std::size_t c, std::size_t i) {
      const auto slope = convert_element<double>(slopes[i]);
      sums[c] += slope;
      products[c] += slope * (convert_element<double>(values[i]) - means[c]);
    });
  });
  return {alone_ ? own : summed(own.clone()), own};
}

BatchOfReplicas::GradientSums BatchOfReplicas::exact_gradient_sums(const Tensor& gradient,
                                                                   const Tensor& own_rows, const Tensor& mean,
                                                                   const Channels& channels) const {
  ExactSums sums(2 * channels.count, own_rows.dtype());
  visit_floating_elements(own_rows, [&]<class T>(std::type_identity<T>) {
    const T* const values = own_rows.span<T>().data();
    const T* const slopes = gradient.span<T>().data();
    const double* const means = mean.span<double>().data();
    channels.for_each([&](std::size_t c, std::size_t i) {
      const auto slope = convert_element<double>(slopes[i]);
      sums.add(c, slope);
      sums.add(channels.count + c, slope * (convert_element<double>(values[i]) - means[c]));
    });
  });
  sums.take(summed(sums.settled()));
  const Tensor of_batch = Tensor::zeros({2, static_cast<std::int64_t>(channels.count)}, DType::kFloat64);
  for (std::size_t sum = 0; sum < of_batch.elements(); ++sum)
    of_batch.span<double>()[sum] = sums.get(sum).high;
  const bool has_them = alone_ || replica_.replica_id_in_sync_group() == 0;
  return {of_batch, has_them ? of_batch : Tensor::zeros(of_batch.shape(), DType::kFloat64)};
}

}  // namespace cohort
