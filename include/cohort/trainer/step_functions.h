// StepFunctions are a replica's part of a training that a program writes itself: a function that makes a
// step, which applies the gradients, and what else a Trainer may be asked for.
//
//     Trainer<Batch> trainer(strategy, {.train = [&](const Batch& mine) {
//       auto [losses, gradients] = step(mine);
//       optimizer.apply_gradients(gradients, {.examples = rows_of(mine)});
//       return losses;                                          // of each example, [rows]
//     }});
#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/strategy/replica_context.h>
#include <cohort/train/optimizers/optimizer.h>
#include <cohort/trainer/step_outcome.h>

namespace cohort {

/// A function of (ReplicaContext&, const Batch&) or of (const Batch&).
template <class Result, class Batch>
class ReplicaFunction {
 public:
  ReplicaFunction() = default;

  template <class Function>
  requires std::is_invocable_r_v<Result, Function&, ReplicaContext&, const Batch&> ReplicaFunction(
      Function function)
      : function_(std::move(function)) {}  // NOLINT(*-explicit-*)

  template <class Function>
  requires(std::is_invocable_r_v<Result, Function&, const Batch&> &&
           !std::is_same_v<Function, ReplicaFunction>)
      ReplicaFunction(Function function)  // NOLINT(*-explicit-*)
      : function_([function = std::move(function)](ReplicaContext&, const Batch& batch) mutable -> Result {
          return function(batch);
        }) {}

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(function_); }
  Result operator()(ReplicaContext& replica, const Batch& batch) const { return function_(replica, batch); }

 private:
  std::function<Result(ReplicaContext&, const Batch&)> function_;
};

template <class Batch>
struct StepFunctions {
  /// Makes a step of training, and returns the losses of the replica's examples.
  ReplicaFunction<StepOutcome, Batch> train = {};
  /// The same without training, for `evaluate`.
  ReplicaFunction<StepOutcome, Batch> test = {};
  /// A prediction for each of the replica's examples, [rows, ...], for `predict`.
  ReplicaFunction<Tensor, Batch> predict = {};

  // What callbacks and checkpoints have to do with.
  std::vector<Variable> parameters = {};
  Optimizer* optimizer = nullptr;
};

}  // namespace cohort
