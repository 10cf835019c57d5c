#include "statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace cohort::bench {
namespace {

std::vector<double> sorted(std::span<const double> values) {
  assert(!values.empty());
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

}  // namespace

double median(std::span<const double> values) {
  const std::vector<double> ascending = sorted(values);
  const std::size_t middle = ascending.size() / 2;
  return ascending.size() % 2 == 1 ? ascending[middle] : (ascending[middle - 1] + ascending[middle]) / 2;
}

double percentile(std::span<const double> values, double percent) {
  const std::vector<double> ascending = sorted(values);
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent * static_cast<double>(ascending.size()) / 100));
  return ascending[std::clamp<std::size_t>(rank, 1, ascending.size()) - 1];
}

}  // namespace cohort::bench
