// What a batch normalization needs of all rows of the global batch, each in one collective.
//
// Usually every replica computes the moments of its own rows, and those of all replicas are merged by their
// counts, means and squared deviations [Chan, Golub, LeVeque 1979], in the order of the replicas. For
// communication that is `reproducible`, sums are exact instead, so that it does not matter which replica has
// a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>
#include <cohort/strategy/replica_context.h>
#include <cohort/train/normalization/sync_batch_norm.h>

namespace cohort {

/// A number as the sum of two, the second of which is at most half a unit in the last place of the first.
struct TwoDoubles {
  double high = 0;
  double low = 0;
};

/// Sums of floating-point numbers without rounding, so that their order does not matter: each sum is a number
/// in fixed point, wide enough for every number that is added [Kulisch 1971]. Its digits have 32 bits and lie
/// in 64-bit integers, so carries can wait for 2^30 additions, and sums of several replicas are added by an
/// all-reduce of integers.
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

/// A contiguous tensor as [outer, channels, inner]: what lies before the axis of the channels and after it.
struct Channels {
  Channels(const Shape& shape, int axis) : count(static_cast<std::size_t>(shape[axis])) {
    for (int before = 0; before < axis; ++before) outer *= static_cast<std::size_t>(shape[before]);
    for (int after = axis + 1; after < shape.rank(); ++after) inner *= static_cast<std::size_t>(shape[after]);
  }

  /// How many numbers each channel has.
  [[nodiscard]] std::size_t rows() const noexcept { return outer * inner; }

  /// Calls `function(channel, index)` for each element, in the order of the memory.
  template <class Function>
  void for_each(Function function) const {
    if (inner == 1) {  // the loop over the channels is the one to be vectorised
      for (std::size_t row = 0; row < outer; ++row)
        for (std::size_t channel = 0; channel < count; ++channel) function(channel, row * count + channel);
      return;
    }
    for (std::size_t run = 0; run < outer * count; ++run)
      for (std::size_t i = 0; i < inner; ++i) function(run % count, run * inner + i);
  }

  std::size_t outer = 1;
  std::size_t count;
  std::size_t inner = 1;
};

/// Calls `function(std::type_identity<T>{})` with the element type of a floating tensor.
template <class Function>
void visit_floating_elements(const Tensor& tensor, Function function) {
  visit_dtype(tensor.dtype(), [&]<class T>(std::type_identity<T> type) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>)
      function(type);
    else
      throw Internal("{} is not floating", describe(tensor));
  });
}

/// The replicas whose rows are one batch.
class BatchOfReplicas {
 public:
  /// `moving_mean` tells one normalization from another, of which replicas must not exchange anything.
  /// `statistics`: whether that is this replica alone.
  BatchOfReplicas(const ReplicaContext& replica, const Variable& moving_mean, BatchStatistics statistics);

  /// The moments of the batch whose part this replica has. On the host.
  [[nodiscard]] BatchMoments moments(const Tensor& own_rows, const Channels& channels) const;

  /// Of each channel the sum of the gradients, and of those times (input - mean): [2, channels], float64.
  struct GradientSums {
    Tensor of_batch;
    Tensor of_this_replica;  ///< where sums are exact: of the batch on the first replica, zeros on others
  };
  [[nodiscard]] GradientSums gradient_sums(const Tensor& gradient, const Tensor& own_rows, const Tensor& mean,
                                           const Channels& channels) const;

 private:
  [[nodiscard]] BatchMoments merged_moments(const Tensor& own_rows, const Channels& channels) const;
  [[nodiscard]] BatchMoments exact_moments(const Tensor& own_rows, const Channels& channels) const;
  [[nodiscard]] GradientSums exact_gradient_sums(const Tensor& gradient, const Tensor& own_rows,
                                                 const Tensor& mean, const Channels& channels) const;

  // A collective of all replicas, on host tensors.
  [[nodiscard]] Tensor gathered(const Tensor& own) const;
  [[nodiscard]] Tensor summed(const Tensor& own) const;
  template <class Call>
  void together(Call&& call) const;

  const ReplicaContext& replica_;
  const Variable& moving_mean_;
  bool alone_;
  bool exact_;
};

}  // namespace cohort
