// Strategies and values that the tests of the strategy layer and of those above it share.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/strategy.h>
#include <cohort/value/variable.h>

#include "thrown.h"

namespace cohort::testing {

/// Long enough for a slow machine, and short enough that a hang ends as a failure.
inline constexpr CommunicationOptions kPatient{.timeout_seconds = 60};

/// For members that are meant to wait in vain.
inline constexpr CommunicationOptions kImpatient{.timeout_seconds = 0.5};

inline MirroredStrategy mirrored(int replicas, const CommunicationOptions& options = kPatient) {
  return MirroredStrategy(cpu_devices(replicas), options);
}

/// What each local replica contributes: `function(global replica id)`.
template <class Function>
auto per_replica(const Strategy& strategy, Function function) {
  return strategy.run([&](ReplicaContext& replica) { return function(replica.replica_id_in_sync_group()); });
}

template <class T>
Tensor tensor_of(const std::vector<T>& values, Shape shape) {
  return Tensor::from(std::span<const T>(values), shape);
}
template <class T>
Tensor vector_of(const std::vector<T>& values) {
  return tensor_of(values, {static_cast<std::int64_t>(values.size())});
}

/// The elements of any tensor, as numbers.
inline std::vector<double> numbers(const Tensor& tensor) {
  const Tensor wide = tensor.cast(DType::kFloat64);
  const auto values = wide.span<double>();
  return {values.begin(), values.end()};
}

/// 1 + 2 + ... + n.
constexpr int sum_to(int n) { return n * (n + 1) / 2; }

/// Tests that run with one replica and with several.
class WithReplicas : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int replicas() { return GetParam(); }
  [[nodiscard]] static int last() { return GetParam() - 1; }
  const MirroredStrategy strategy_ = mirrored(GetParam());
};

/// Tests of what replicas do to each other.
class WithSeveralReplicas : public WithReplicas {};

#define COHORT_INSTANTIATE_REPLICAS(Suite)                                    \
  INSTANTIATE_TEST_SUITE_P(Replicas, Suite, ::testing::Values(1, 2, 3, 4, 7), \
                           ::testing::PrintToStringParamName())
#define COHORT_INSTANTIATE_SEVERAL_REPLICAS(Suite)                         \
  INSTANTIATE_TEST_SUITE_P(Replicas, Suite, ::testing::Values(2, 3, 4, 7), \
                           ::testing::PrintToStringParamName())

// What the tests of a strategy's variables share.

inline constexpr VariableAggregation kAllAggregations[] = {
    VariableAggregation::kNone,
    VariableAggregation::kSum,
    VariableAggregation::kMean,
    VariableAggregation::kOnlyFirstReplica,
};

inline Variable variable_in(const Strategy& strategy, const VariableOptions& options) {
  const auto scope = strategy.scope();
  return Variable(options);
}

/// The components of a variable of shape [].
inline std::vector<double> components(const Variable& variable) {
  std::vector<double> values;
  for (const Tensor& component : variable.components()) values.push_back(component.item<double>());
  return values;
}

/// All elements of a variable's component.
inline std::vector<double> component(const Variable& variable, int index) {
  const Tensor wide = variable.components()[static_cast<std::size_t>(index)].cast(DType::kFloat64);
  return {wide.span<double>().begin(), wide.span<double>().end()};
}

}  // namespace cohort::testing
