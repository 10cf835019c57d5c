#include "mirrored_variable.h"

#include "element_update.h"
#include "row_update.h"

namespace cohort {

void MirroredVariable::assign_in_replica(const ElementUpdate& update, const Tensor& value,
                                         int local_replica) const {
  const VariableAggregation aggregation = options().aggregation;
  const Tensor& own = component(local_replica);
  if (aggregation == VariableAggregation::kNone) return update.apply(own, value);
  VariablePurpose purpose(update.operation, *this, own.device());
  update.apply(own, strategy().aggregate(aggregation, value, local_replica, purpose));
}

void MirroredVariable::scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                          int local_replica) const {
  const VariableAggregation aggregation = options().aggregation;
  const Tensor& own = component(local_replica);
  if (aggregation == VariableAggregation::kNone) return update.apply(own, rows);
  VariablePurpose purpose(update.operation, *this, own.device());
  update.apply(own, strategy().aggregate_rows(aggregation, rows, local_replica, purpose));
}

void MirroredVariable::require_scatter(const RowUpdate& update) const {
  const VariableAggregation aggregation = options().aggregation;
  if (update.aggregates || aggregation == VariableAggregation::kNone ||
      aggregation == VariableAggregation::kOnlyFirstReplica) {
    return;
  }
  throw Unimplemented(
      "{} of variable '{}' with aggregation {}: the rows of several replicas can be combined only for add, "
      "sub, mul and div; use aggregation none or only_first_replica",
      update.operation.name, options().name, to_string(aggregation));
}

}  // namespace cohort
