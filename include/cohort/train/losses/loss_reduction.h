// What the losses of a replica's examples amount to in the loss of the global batch: the batch of all
// replicas.
#pragma once

#include <cstdint>
#include <optional>

#include <cohort/device/tensor.h>

namespace cohort {

enum class LossReduction : std::uint8_t {
  kSumOverBatchSize,      ///< sum(weight loss) / examples
  kMeanWithSampleWeight,  ///< sum(weight loss) / sum(weight)
  kSum,                   ///< sum(weight loss)
  kNone,                  ///< weight loss, for each example
};

struct ReduceLossesOptions {
  LossReduction reduction = LossReduction::kSumOverBatchSize;
  /// A weight for each loss, for each row of losses, or one for all.
  std::optional<Tensor> sample_weight = {};
  /// In the shape of the losses; those that are 0 or false do not count at all, such as padding.
  std::optional<Tensor> mask = {};
};

/// This replica's part of the reduced loss: the parts of all replicas add up to the loss of the global batch.
/// Examples weigh the same wherever they are: what divides is the sum over all replicas, so batches may be
/// uneven, and a replica without examples has the part 0. A scalar of the losses' dtype, unless the reduction
/// is kNone.
///
/// Inside a replica the first two reductions are a collective of one number, and all replicas call it;
/// compute_average_loss needs none, where the size of the global batch is known. Outside replicas the losses
/// are the whole batch.
/// @throws InvalidArgument for losses that are not floating, and weights or a mask that do not fit.
[[nodiscard]] Tensor reduce_losses(const Tensor& losses, const ReduceLossesOptions& options = {});

}  // namespace cohort
