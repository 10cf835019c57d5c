// What the tests of update options share: steps of one replica and of several.
#pragma once

#include <vector>

#include <gmock/gmock.h>

#include <cohort/train/optimizers/optimizer.h>

#include "../../strategy/strategies.h"

namespace cohort::testing {

class WithOptions : public WithReplicas {
 protected:
  Variable variable_of(const Tensor& value, const char* name = "weights") const {
    const auto scope = strategy_.scope();
    return Variable({.name = name, .initial_value = value});
  }

  /// A step with gradients whose sums over all replicas are `sums`; each replica has its number's part.
  void step(Optimizer& optimizer, const std::vector<Variable>& variables, const std::vector<Tensor>& sums,
            const ApplyOptions& options = {}) const {
    strategy_.run([&](ReplicaContext& replica) {
      const double part = (replica.replica_id_in_sync_group() + 1.0) / sum_to(replicas());
      std::vector<GradientAndVariable> gradients;
      for (std::size_t i = 0; i < variables.size(); ++i) {
        const Tensor own = sums[i].cast(DType::kFloat64).clone();
        for (double& element : own.span<double>()) element *= part;
        gradients.push_back({own.cast(variables[i].dtype()), variables[i]});
      }
      optimizer.apply_gradients(gradients, options);
    });
  }

  /// Of all components, which must be equal.
  static std::vector<double> values(const Variable& variable) {
    std::vector<double> first = numbers(variable.components().front());
    for (const Tensor& component : variable.components()) EXPECT_EQ(numbers(component), first);
    return first;
  }
};

inline auto near(const std::vector<double>& wanted, double tolerance = 1e-12) {
  return ::testing::Pointwise(::testing::DoubleNear(tolerance), wanted);
}

}  // namespace cohort::testing
