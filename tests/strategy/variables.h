// What the tests of a strategy's variables share.
#pragma once

#include <vector>

#include <cohort/strategy/strategy.h>
#include <cohort/value/variable.h>

namespace cohort::testing {

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
