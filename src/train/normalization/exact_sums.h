// Sums of floating-point numbers without rounding, so that their order does not matter: each sum is a number
// in fixed point, wide enough for every number that is added [Kulisch 1971]. Its digits have 32 bits and lie
// in 64-bit integers, so carries can wait for 2^30 additions, and sums of several replicas are added by an
// all-reduce of integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cohort/device/tensor.h>

namespace cohort {

/// A number as the sum of two, the second of which is at most half a unit in the last place of the first.
struct TwoDoubles {
  double high = 0;
  double low = 0;
};

class ExactSums {
 public:
  /// `count` sums of numbers, products and squares of elements of the given dtype. Smaller digits than those
  /// of the product of two such elements are cut off; in float64, those below 2^-1074.
  ExactSums(std::size_t count, DType dtype);

  void add(std::size_t sum, double value);

  /// Adds the square, all digits of it.
  void add_square(std::size_t sum, double value);

  /// The digits of all sums, for an all-reduce over up to 2^30 members: int64.
  [[nodiscard]] const Tensor& settled();

  /// What the all-reduce gave.
  void take(const Tensor& digits) { all_ = digits; }

  /// The sum, rounded to about 106 bits; NaN if something was added that is not finite.
  [[nodiscard]] TwoDoubles get(std::size_t sum) const;

 private:
  [[nodiscard]] std::span<std::int64_t> digits(std::size_t sum) const {
    return all_.span<std::int64_t>().subspan(sum * (digits_ + 1), digits_);
  }
  [[nodiscard]] std::int64_t& not_finite(std::size_t sum) const {
    return all_.span<std::int64_t>()[sum * (digits_ + 1) + digits_];
  }
  void carry();

  int lowest_exponent_;  ///< of the first digit's first bit
  std::size_t digits_;   ///< of a sum; after them comes how many numbers were not finite
  std::size_t count_;
  Tensor all_;
  std::size_t since_carry_ = 0;
};

}  // namespace cohort
