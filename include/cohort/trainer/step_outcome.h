// A StepOutcome is what one replica's step tells of its examples: their losses, from which the loss of the
// epoch follows, and what metrics need. Replicas with more examples count for more, and those without any
// for nothing.
#pragma once

#include <optional>
#include <utility>

#include <cohort/device/tensor.h>

namespace cohort {

/// The sum of the losses of so many examples.
struct LossSum {
  double sum = 0;
  double examples = 0;
};

struct StepOutcome {
  /// The loss of each example, [rows], floating; each counts as often as its weight says.
  StepOutcome(Tensor of_examples, std::optional<Tensor> their_weights = {})  // NOLINT(*-explicit-*)
      : losses(std::move(of_examples)), weights(std::move(their_weights)) {}

  /// Where the step has added them up itself.
  StepOutcome(const LossSum& of_all) : sum(of_all) {}  // NOLINT(*-explicit-*): a step may return either

  std::optional<Tensor> losses = {};
  std::optional<Tensor> weights = {};  ///< [rows]; none: 1 each
  LossSum sum = {};                    ///< where there are no `losses`

  // For metrics; without both, the step updates metrics itself.
  std::optional<Tensor> labels = {};
  std::optional<Tensor> predictions = {};
};

}  // namespace cohort
