// Losses of predicted classes. Predictions are probabilities, or logits: numbers of which the sigmoid, or the
// softmax of a row, is the probability. From logits the losses are computed without overflow, and their
// gradients without a division: prefer them. Probabilities are kept between 1e-7 and 1 - 1e-7.
#pragma once

#include <cstdint>
#include <optional>

#include <cohort/train/losses/loss.h>

namespace cohort::losses {

struct CrossentropyOptions {
  bool from_logits = false;
  /// The label y becomes y (1 - s) + s / classes, where two-valued labels have two classes [Szegedy et al.
  /// 2016, "Rethinking the Inception Architecture for Computer Vision"].
  double label_smoothing = 0;
};

struct SparseCrossentropyOptions {
  bool from_logits = false;
  /// Rows of this label have the loss 0 and no gradient; see the mask of reduce_losses.
  std::optional<std::int64_t> ignore_class = {};
};

/// The loss is multiplied by (1 - probability of the label)^gamma: what is predicted well counts little [Lin
/// et al. 2017, "Focal Loss for Dense Object Detection"].
struct FocalOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  double gamma = 2;  ///< not negative
  /// Two-valued labels: the weight of label 1, and 1 - alpha that of label 0; unset: both count 1. Several
  /// classes: the weight of all; unset: 0.25.
  std::optional<double> alpha = {};
};

// Labels from 0 to 1, for each element of the predictions; the loss of a row is the mean over its columns.

/// -y log p - (1 - y) log(1 - p).
[[nodiscard]] Loss binary_crossentropy(const CrossentropyOptions& options = {});
[[nodiscard]] Loss binary_focal_crossentropy(const FocalOptions& options = {});
/// max(0, 1 - y p) for labels 1 and -1; the label 0 is taken for -1.
[[nodiscard]] Loss hinge();
/// Its square.
[[nodiscard]] Loss squared_hinge();

// Labels are distributions over the classes, such as one-hot rows: [..., classes], as the predictions.

/// -sum y log p. Rows of probabilities are divided by their sums first.
[[nodiscard]] Loss categorical_crossentropy(const CrossentropyOptions& options = {});
[[nodiscard]] Loss categorical_focal_crossentropy(const FocalOptions& options = {});
/// sum y log(y / p), both kept between 1e-7 and 1.
[[nodiscard]] Loss kl_divergence();
/// max(0, 1 + largest p of another class - p of the label).
[[nodiscard]] Loss categorical_hinge();

/// The cross-entropy of labels that are classes from 0, one for each row of predictions.
/// @throws InvalidArgument, when it is used, for a label that is no class.
[[nodiscard]] Loss sparse_categorical_crossentropy(const SparseCrossentropyOptions& options = {});

}  // namespace cohort::losses
