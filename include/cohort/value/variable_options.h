// How a variable is made: its value, and what keeps its components equal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/device/tensor.h>

namespace cohort {

class Variable;

/// When the components of a variable are brought together.
enum class VariableSynchronization {
  kAuto,     ///< the strategy chooses: on write
  kNone,     ///< never; for strategies of a single copy only
  kOnWrite,  ///< every write leaves them equal, by the variable's aggregation
  kOnRead,   ///< each replica writes its own; a read outside replicas aggregates them
};

/// How the different values that replicas assign to one variable are combined.
enum class VariableAggregation {
  kNone,              ///< each replica writes its own component; keeping them equal is up to the caller
  kSum,               ///< the sum over all replicas is assigned to every component
  kMean,              ///< the mean over all replicas is assigned to every component
  kOnlyFirstReplica,  ///< the value of replica 0 is assigned to every component
};

[[nodiscard]] std::string_view to_string(VariableSynchronization synchronization) noexcept;
[[nodiscard]] std::string_view to_string(VariableAggregation aggregation) noexcept;

struct VariableOptions {
  Shape shape = {};               ///< [] means that of `initial_value`, or a scalar
  DType dtype = DType::kFloat32;  ///< ignored when `initial_value` is given
  std::string name = "variable";  ///< several variables may have the same
  /// Workers, and replicas that make a variable together, must give it the same name: those that make `a, b`
  /// and `b, a` would otherwise swap values. True where each has names of its own.
  bool name_may_differ = false;
  std::optional<Tensor> initial_value = {};  ///< zeros when absent
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  std::optional<bool> trainable = {};       ///< when absent: true unless ON_READ
  std::vector<Device> devices = {};         ///< of each component; empty: where the strategy puts them
  const Variable* colocate_with = nullptr;  ///< a variable of the same strategy, whose devices to use
};

}  // namespace cohort
