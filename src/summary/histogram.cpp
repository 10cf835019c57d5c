#include "summary/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <cohort/base/error.h>

namespace cohort {
namespace {

struct Interval {
  double begin = 0;
  double end = 0;
};

Interval around(std::span<const double> values) {
  Interval all{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    all.begin = std::min(all.begin, value);
    all.end = std::max(all.end, value);
  }
  return all.begin <= all.end ? all : Interval{};
}

}  // namespace

Tensor histogram_of(const Tensor& values, int buckets) {
  if (buckets < 1) throw InvalidArgument("histogram: {} buckets, but at least 1 is needed", buckets);
  const Tensor doubles = values.on_host().cast(DType::kFloat64);
  const std::span<const double> all = doubles.span<double>();
  const Interval range = around(all);
  const Tensor result = Tensor::zeros({buckets, 3}, DType::kFloat64);
  const std::span<double> rows = result.span<double>();
  // Halved, because the range of two large numbers may overflow.
  const double width = (range.end / 2 - range.begin / 2) / buckets * 2;
  for (int bucket = 0; bucket < buckets; ++bucket) {
    rows[static_cast<std::size_t>(bucket) * 3] = range.begin + width * bucket;
    rows[static_cast<std::size_t>(bucket) * 3 + 1] =
        bucket + 1 == buckets ? range.end : range.begin + width * (bucket + 1);
  }
  for (const double value : all) {
    if (!std::isfinite(value)) continue;
    const double place = width > 0 ? (value / 2 - range.begin / 2) / width * 2 : buckets;
    const auto bucket = static_cast<std::size_t>(std::clamp<double>(place, 0, buckets - 1));
    ++rows[bucket * 3 + 2];
  }
  return result;
}

}  // namespace cohort
