#include "aggregating_variable.h"

#include <functional>
#include <typeindex>

#include <cohort/value/detail/merge_point.h>

#include "collective/kernels/reduce_tensors.h"
#include "element_update.h"
#include "row_update.h"

namespace cohort {
namespace {

/// Pauses all local replicas and calls `function` once, with the operands of all of them.
template <class Operand>
void meet(const VariableOperation& operation, const VariableState& variable, Operand mine,
          const std::function<void(std::span<const Operand>)>& function) {
  const auto merge = [&](std::span<void* const> by_replica) {
    std::vector<Operand> operands;
    for (void* const of_replica : by_replica) operands.push_back(*static_cast<const Operand*>(of_replica));
    function(operands);
    return std::shared_ptr<void>();
  };
  const ContextMode& mode = current_mode();
  const VariablePurpose purpose(operation, variable, mode.device.value_or(Device()));
  MergeRequest request{operation.name, typeid(mine), &mine, merge, purpose};
  static_cast<void>(mode.merge_point->meet(mode.local_replica, request));
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
        update.operation.name, options().name, strategy().local_replicas());
  }
  if (aggregation == VariableAggregation::kMean && !is_floating(value.dtype())) {
    throw InvalidArgument("{} of {} to variable '{}': the mean of integers is a fraction",
                          update.operation.name, describe(value), options().name);
  }
  if (aggregation == VariableAggregation::kSum) require_legal(ReduceOp::kSum, value.dtype());
  meet<Tensor>(update.operation, *this, value,
               [&](std::span<const Tensor> values) { write(update, aggregated(aggregation, values)); });
}

void AggregatingVariable::scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                             int /*local_replica*/) const {
  meet<IndexedSlices>(update.operation, *this, rows, [&](std::span<const IndexedSlices> of_replicas) {
    for (const IndexedSlices& of_replica : of_replicas) write_rows(update, of_replica);
  });
}

void AggregatingVariable::write(const ElementUpdate& update, const Tensor& value) const {
  update.apply(component(0), value);
}

void AggregatingVariable::write_rows(const RowUpdate& update, const IndexedSlices& rows) const {
  update.apply(component(0), rows);
}

}  // namespace cohort
