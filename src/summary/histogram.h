// How values are spread.
#pragma once

#include <cohort/device/tensor.h>

namespace cohort {

/// float64[buckets, 3]: where each of `buckets` intervals of one width begins, where it ends, and how many of
/// the values lie in it. The last one has its end too. Values that are not finite are in none; without
/// finite values all is 0. @throws InvalidArgument for fewer than 1 bucket.
[[nodiscard]] Tensor histogram_of(const Tensor& values, int buckets);

}  // namespace cohort
