// The tests by which two runs are compared: by ranks, and exact, since times have long tails and samples are
// small.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace cohort::bench {

/// The probability that `now` has so large values beside `before` if their order is chance: one-sided
/// Mann-Whitney test [Mann, Whitney 1947], by its exact distribution, also where values are equal. Never 0.
/// Neither is empty.
[[nodiscard]] double chance_of_larger(std::span<const double> before, std::span<const double> now);

/// The smallest probability that samples of these sizes can have.
[[nodiscard]] double least_chance(std::size_t before, std::size_t now);

/// By Holm's correction [Holm 1979]: where all order is chance, the probability that any of the results is
/// below a bound is no more than that bound. In the order of `chances`.
[[nodiscard]] std::vector<double> corrected(std::span<const double> chances);

/// How many times larger `before` is than `now`: the median of the quotients of all pairs [Hodges, Lehmann
/// 1963], and an interval that has the true one in at least 95 of 100 cases, where there are values enough.
struct Quotient {
  double estimate = 0;
  std::optional<double> low = {};
  std::optional<double> high = {};
};
[[nodiscard]] Quotient quotient(std::span<const double> before, std::span<const double> now);

}  // namespace cohort::bench
