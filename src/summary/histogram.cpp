#include "summary/histogram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <cohort/base/error.h>

namespace cohort {
namespace {

constexpr std::size_t kLanes = 8;     // that the compiler can take together
constexpr std::size_t kBlock = 1024;  // values whose buckets are computed before they are counted

struct Interval {
  double begin = 0;
  double end = 0;
};

template <class T>
bool is_finite(T value) {
  return std::abs(value) <= std::numeric_limits<T>::max();  // which NaN is not
}

/// Of the finite values.
template <class T>
Interval around(std::span<const T> values) {
  std::array<T, kLanes> least;
  std::array<T, kLanes> most;
  least.fill(std::numeric_limits<T>::infinity());
  most.fill(-std::numeric_limits<T>::infinity());
  const auto take = [&](T value, std::size_t lane) {
    const bool counts = is_finite(value);
    const T low = counts ? value : least[lane];
    const T high = counts ? value : most[lane];
    least[lane] = low < least[lane] ? low : least[lane];
    most[lane] = high > most[lane] ? high : most[lane];
  };
  const std::size_t whole = values.size() - values.size() % kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(values[i + lane], lane);
  for (std::size_t i = whole; i < values.size(); ++i) take(values[i], 0);
  const Interval all{std::ranges::min(least), std::ranges::max(most)};
  return all.begin <= all.end ? all : Interval{};
}

/// Which of the buckets of one width a value lies in. Numbers are halved, because the range of two large ones
/// may overflow.
struct Buckets {
  Buckets(const Interval& all, int buckets)
      : half_begin(all.begin / 2), half_width((all.end / 2 - half_begin) / buckets), last(buckets - 1) {}

  /// last + 1 for values that do not count. If all are one value, they are in the last bucket.
  template <class T>
  [[nodiscard]] std::int32_t of(T value) const {
    const double place = half_width > 0 ? (static_cast<double>(value) / 2 - half_begin) / half_width : last;
    const double least = place < 0 ? 0 : place;
    const double inside = least < last ? least : last;
    return static_cast<std::int32_t>(is_finite(value) ? inside : last + 1);
  }

  double half_begin;
  double half_width;
  double last;
};

/// How many values are in each bucket.
template <class T>
std::vector<std::int64_t> count(std::span<const T> values, const Buckets& buckets) {
  // Two sets of counts in turns: values that follow each other are often in the same bucket.
  const std::size_t stride = static_cast<std::size_t>(buckets.last) + 2;
  std::vector<std::int64_t> counts(2 * stride);
  std::array<std::int32_t, kBlock> places{};
  for (; !values.empty(); values = values.subspan(std::min(kBlock, values.size()))) {
    const std::span<const T> block = values.first(std::min(kBlock, values.size()));
    for (std::size_t i = 0; i < block.size(); ++i) places[i] = buckets.of(block[i]);
    for (std::size_t i = 0; i < block.size(); ++i)
      ++counts[static_cast<std::size_t>(places[i]) + (i % 2) * stride];
  }
  for (std::size_t i = 0; i < stride; ++i) counts[i] += counts[i + stride];
  return counts;
}

template <class T>
Tensor histogram(std::span<const T> values, int buckets) {
  const Interval range = around(values);
  const std::vector<std::int64_t> counts = count(values, Buckets(range, buckets));
  Tensor result = Tensor::zeros({buckets, 3}, DType::kFloat64);
  const std::span<double> rows = result.span<double>();
  const double width = (range.end / 2 - range.begin / 2) / buckets * 2;
  for (int bucket = 0; bucket < buckets; ++bucket) {
    const auto row = rows.subspan(static_cast<std::size_t>(bucket) * 3, 3);
    row[0] = range.begin + width * bucket;
    row[1] = bucket + 1 == buckets ? range.end : range.begin + width * (bucket + 1);
    row[2] = static_cast<double>(counts[static_cast<std::size_t>(bucket)]);
  }
  return result;
}

}  // namespace

Tensor histogram_of(const Tensor& values, int buckets) {
  if (buckets < 1) throw InvalidArgument("histogram: {} buckets, but at least 1 is needed", buckets);
  const Tensor here = values.on_host();
  if (here.dtype() == DType::kFloat32) return histogram(here.span<const float>(), buckets);
  const Tensor doubles = here.cast(DType::kFloat64);
  return histogram(doubles.span<const double>(), buckets);
}

}  // namespace cohort
