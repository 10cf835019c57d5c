// What the scenarios of variables share.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/value/variable.h>

#include "common.h"

namespace cohort::conformance {

// The rows of "Deliberate differences" that several scenarios of variables refer to.
inline constexpr std::string_view kFirstOfAll = "the first replica is the first of all workers";
inline constexpr std::string_view kTensors = "reads and reductions give tensors";

/// How a variable is kept, as names of scenarios say it: `ON_WRITE_SUM`.
struct VariableKind {
  VariableSynchronization synchronization;
  VariableAggregation aggregation;

  [[nodiscard]] bool on_read() const { return synchronization == VariableSynchronization::kOnRead; }
  [[nodiscard]] bool first_only() const { return aggregation == VariableAggregation::kOnlyFirstReplica; }

  /// Whether what replicas write is aggregated where there is a component for each of them.
  [[nodiscard]] bool keeps_equal() const { return !on_read() && aggregation != VariableAggregation::kNone; }
};

[[nodiscard]] std::string name_of(VariableSynchronization synchronization);
[[nodiscard]] std::string name_of(VariableAggregation aggregation);
[[nodiscard]] std::string name_of(const VariableKind& kind);

/// Every aggregation.
[[nodiscard]] const std::vector<VariableAggregation>& aggregations();

/// ON_WRITE and ON_READ with every aggregation.
[[nodiscard]] const std::vector<VariableKind>& variable_kinds();

/// A variable of the layout's strategy.
[[nodiscard]] Variable make_variable(const Layout& layout, const VariableOptions& options);
[[nodiscard]] Variable make_variable(const Layout& layout, const VariableKind& kind, const Tensor& initial);

/// The same, of which every replica has assigned r + 1 inside `run`.
[[nodiscard]] Variable counted_variable(const Layout& layout, const VariableKind& kind);

/// A variable's value on each of its devices.
[[nodiscard]] Json components(const Variable& variable);

/// Whether the layout keeps variables once instead of mirroring them.
[[nodiscard]] bool keeps_single_copies(const Layout& layout);

/// The original's notation for a variable or one of its components.
[[nodiscard]] inline Json handle(Json value) { return {{"Variable", std::move(value)}}; }

}  // namespace cohort::conformance
