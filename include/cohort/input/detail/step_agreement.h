// How the workers that read a distributed dataset agree on its end: a worker whose data has ended
// goes on with empty batches until the others' have ended, too. It costs nothing where all of them
// are known to have the same number of steps; one small all-reduce of flags for each step that some
// worker may not have; and one at the beginning, which finds out. Calls are made by the thread that
// drives the strategy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <cohort/device/tensor_spec.h>
#include <cohort/input/cardinality.h>
#include <cohort/strategy/strategy_extended.h>

namespace cohort::detail {

/// What one worker can say of its next step.
struct StepOffer {
  bool has_data = false;         ///< for at least one of its replicas
  bool needs_form = false;       ///< it must make empty batches, and has not seen any to model them on
  bool cannot_be_empty = false;  ///< it lacks a batch whose elements have no batch axis
};

/// What the workers do about it, all of them the same.
struct StepDecision {
  bool goes_on = false;
  std::optional<int> form_from = {};  ///< some worker needs a form, and this one has it
};

class StepAgreement {
 public:
  /// `own_steps`: how many steps this worker surely has. `shared`: every worker reads everything, so that
  /// they all have the same steps. Collective over the workers.
  /// @throws InvalidArgument on all workers when `own_steps` says that what they share differs.
  StepAgreement(StrategyExtended& extended, Cardinality own_steps, bool shared);

  /// Whether each worker knows what the others have to say of step number `step`.
  [[nodiscard]] bool is_known(std::int64_t step) const noexcept { return step < known_steps_; }

  /// Whether this worker's end is everybody's.
  [[nodiscard]] bool ends_together() const noexcept { return ends_together_; }

  /// Collective over the workers.
  [[nodiscard]] StepDecision decide(const StepOffer& own);

  /// The specs of worker `from`, given there, on every worker. Collective over the workers.
  [[nodiscard]] std::vector<TensorSpec> share_form(std::span<const TensorSpec> own, int from);

 private:
  StrategyExtended& extended_;
  std::int64_t known_steps_ = 0;
  bool ends_together_ = false;
  Tensor flags_;
};

}  // namespace cohort::detail
