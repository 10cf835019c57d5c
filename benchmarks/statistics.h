// What is reported of a series of times. The median and the percentiles are order
// statistics, so a few interrupted iterations do not move them.
#pragma once

#include <span>

namespace cohort::bench {

/// The middle value; the mean of the two middle ones of an even number. `values` is not empty.
[[nodiscard]] double median(std::span<const double> values);

/// The smallest value that is not below `percent` per cent of all (nearest rank), so it is one
/// that occurred; with fewer than 100 values the 99th percentile is the largest.
[[nodiscard]] double percentile(std::span<const double> values, double percent);

}  // namespace cohort::bench
