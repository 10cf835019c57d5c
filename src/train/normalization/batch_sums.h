// What a batch normalization needs of all rows of the global batch, each in one collective.
//
// Usually every replica computes the moments of its own rows, and those of all replicas are merged by their
// counts, means and squared deviations [Chan, Golub, LeVeque 1979], in the order of the replicas. For
// communication that is `reproducible`, sums are exact instead (see exact_sums.h), so that it does not matter
// which replica has a row.
#pragma once

#include <span>
#include <utility>

#include <cohort/strategy/replica_context.h>
#include <cohort/train/normalization/sync_batch_norm.h>

#include "channels.h"

namespace cohort {

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
