// What the scenarios of variables share.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

// Assignments: three operations on variables that begin with 10.

inline constexpr double kStart = 10;

struct Operation {
  std::string_view name;
  const Variable& (Variable::*of_tensor)(const Tensor&) const;
  const Variable& (Variable::*of_number)(double) const;
  double (*result)(double before, double value);
};

inline constexpr std::array kOperations{
    Operation{"assign", &Variable::assign, &Variable::assign, [](double, double value) { return value; }},
    Operation{"assign_add", &Variable::assign_add, &Variable::assign_add,
              [](double before, double value) { return before + value; }},
    Operation{"assign_sub", &Variable::assign_sub, &Variable::assign_sub,
              [](double before, double value) { return before - value; }},
};

/// One operation on one kind of variable.
struct Assignment {
  VariableKind kind;
  Operation operation;

  [[nodiscard]] std::string scenario(std::string_view what) const {
    return fmt::format("var/{}_{}/{}", name_of(kind), operation.name, what);
  }
};

}  // namespace cohort::conformance
