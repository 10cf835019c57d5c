#include "block_squares.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace cohort {
namespace {

/// Enough sums side by side to hide the latency of an addition, in an order that no compiler changes.
constexpr std::size_t kLanes = 8;

template <class T>
double squares_of(std::span<const T> elements) {
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= elements.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto element = convert_element<double>(elements[i + lane]);
      lanes[lane] += element * element;
    }
  }
  for (std::size_t lane = 0; i < elements.size(); ++i, ++lane) {
    const auto element = convert_element<double>(elements[i]);
    lanes[lane] += element * element;
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace

void block_squares(const Tensor& gradient, std::span<double> sums) {
  COHORT_CHECK(sums.size() == blocks_of(gradient.elements()));
  visit_dtype(gradient.dtype(), [&]<class T>(std::type_identity<T>) {
    const std::span<const T> elements = gradient.span<T>();
    for (std::size_t block = 0; block < sums.size(); ++block) {
      const std::size_t begin = block * kSquaresBlock;
      sums[block] = squares_of(elements.subspan(begin, std::min(kSquaresBlock, elements.size() - begin)));
    }
  });
}

}  // namespace cohort
