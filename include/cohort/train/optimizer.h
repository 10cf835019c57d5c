// Optimizers turn gradients into updates of variables. `apply_gradients`, called by
// every replica, sums the gradients over all replicas and then updates each replica's
// component; since all see the same sums, the components stay equal.
//
// A gradient is therefore this replica's part of the gradient of the whole batch: scale
// the loss by the global batch size, not by the replica's.
#pragma once

#include <span>
#include <vector>

#include <cohort/value/variable.h>

namespace cohort {

struct GradientAndVariable {
  Tensor gradient;
  Variable variable;
};

/// What `apply_gradients` does with the gradients before it updates the variables.
enum class GradientAggregation {
  kSum,         ///< sums them over all replicas; the caller's tensors are left alone
  kSumInPlace,  ///< the same in the caller's tensors, which must not overlap: less than half the time
  kNone,        ///< nothing: they are equal on all replicas already, as GradientBuckets leaves them
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Called inside `run` (or outside any scope), with the same variables on every replica.
  /// @throws WrongContext in cross-replica context; InvalidArgument when a gradient does not have
  /// its variable's shape and dtype, naming it.
  void apply_gradients(const std::vector<GradientAndVariable>& gradients,
                       GradientAggregation aggregation = GradientAggregation::kSum) const;

 protected:
  /// Updates `variable` in place; both have the same shape and floating dtype.
  virtual void update(const Tensor& variable, const Tensor& gradient) const = 0;
};

struct SgdOptions {
  double learning_rate = 0.01;
};

/// Stochastic gradient descent: variable -= learning_rate * gradient.
class Sgd final : public Optimizer {
 public:
  /// @throws InvalidArgument for a learning rate that is not a positive number.
  explicit Sgd(SgdOptions options = {});

 private:
  void update(const Tensor& variable, const Tensor& gradient) const override;
  SgdOptions options_;
};

}  // namespace cohort
