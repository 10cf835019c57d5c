// The loss of a replica's examples as its part of the loss of the whole batch.
#pragma once

#include <cstdint>
#include <optional>

#include <cohort/device/tensor.h>

namespace cohort {

struct AverageLossOptions {
  /// Weights of the losses, in their shape; of rows of losses, in the shape of their first axes; or one for
  /// all.
  std::optional<Tensor> sample_weight = {};
  std::optional<std::int64_t> global_batch_size = {};  ///< unset: this replica's examples times the replicas
};

/// The sum of the losses of this replica's examples, divided by the size of the global batch: the
/// replicas' results sum up to the mean over all examples. Losses have any shape, with an element for each
/// example; the result is a scalar, [], of their dtype. Of no examples, or an empty batch, it is 0.
/// @throws WrongContext in cross-replica context, unless the batch size is given; InvalidArgument for losses
/// that are not floating, weights that do not fit, or a negative batch size.
[[nodiscard]] Tensor compute_average_loss(const Tensor& per_example_loss,
                                          const AverageLossOptions& options = {});

/// The sum of losses that do not depend on examples, such as the squares of weights, divided by the number of
/// replicas: each of them has this loss, and the parts add up to it. A scalar of the losses' dtype.
/// @throws WrongContext in cross-replica context; InvalidArgument for losses that are not floating.
[[nodiscard]] Tensor scale_regularization_loss(const Tensor& losses);

}  // namespace cohort
