#include "aggregating_variable.h"

#include <functional>
#include <typeindex>

#include <cohort/value/detail/merge_point.h>

#include "collective/kernels/reduce_tensors.h"
#include "element_update.h"
#include "row_update.h"

namespace cohort {
namespace {

/// One replica's part in an update of `variable`.
template <class Operand>
struct Part {
  const VariableState* variable;
  Operand operand;
};

/// Pauses all local replicas and calls `function` once, with the operands of all of them.
template <class Operand>
void meet(std::string_view call, Part<Operand> mine,
          const std::function<void(std::span<const Operand>)>& function) {
  const auto merge = [&](std::span<void* const> by_replica) {
    std::vector<Operand> operands;
    for (void* const of_replica : by_replica) {
      const auto& part = *static_cast<const Part<Operand>*>(of_replica);
      if (part.variable != mine.variable) {
        throw InvalidArgument("{} inside run(): replica {} changes variable '{}', replica 0 changes '{}'",
                              call, operands.size(), part.variable->options().name,
                              mine.variable->options().name);
      }
      operands.push_back(part.operand);
    }
    function(operands);
    return std::shared_ptr<void>();
  };
  MergeRequest request{call, typeid(mine), &mine, merge};
  static_cast<void>(current_mode().merge_point->meet(current_mode().local_replica, request));
}

Tensor aggregated(VariableAggregation aggregation, std::span<const Tensor> values) {
  const Tensor& first = values.front();
  if (aggregation == VariableAggregation::kOnlyFirstReplica) return first;
  return reduced(aggregation == VariableAggregation::kSum ? ReduceOp::kSum : ReduceOp::kMean, values);
}

}  // namespace

void AggregatingVariable::assign_in_replica(const ElementUpdate& update, const Tensor& value,
                                            int /*local_replica*/) const {
  const VariableAggregation aggregation = options().aggregation;
  if (aggregation == VariableAggregation::kNone) {
    throw InvalidArgument(
        "{} of variable '{}' inside run(): {} replicas share its single copy, so it must have an "
        "aggregation; choose sum, mean or only_first_replica",
        update.name, options().name, strategy().local_replicas());
  }
  if (aggregation == VariableAggregation::kMean && !is_floating(value.dtype())) {
    throw InvalidArgument("{} of {} to variable '{}': the mean of integers is a fraction", update.name,
                          describe(value), options().name);
  }
  if (aggregation == VariableAggregation::kSum) require_legal(ReduceOp::kSum, value.dtype());
  meet<Tensor>(update.name, {this, value}, [&](std::span<const Tensor> values) {
    update.apply(component(0), aggregated(aggregation, values));
  });
}

void AggregatingVariable::scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                             int /*local_replica*/) const {
  meet<IndexedSlices>(update.name, {this, rows}, [&](std::span<const IndexedSlices> of_replicas) {
    for (const IndexedSlices& of_replica : of_replicas) update.apply(component(0), of_replica);
  });
}

}  // namespace cohort
