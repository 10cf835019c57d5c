#include "mirrored_variable.h"

#include <algorithm>

#include <cohort/value/device_scope.h>

#include "element_update.h"
#include "row_update.h"

namespace cohort {

MirroredVariable::MirroredVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner,
                                   std::vector<Tensor> components)
    : VariableState(std::move(options), std::move(owner), std::move(components)) {}

Tensor MirroredVariable::read_across() const {
  const auto here = std::ranges::find(components(), current_device(), [](const Tensor& component) {
    return std::optional(component.device());
  });
  return (here != components().end() ? *here : components().front()).clone();
}

void MirroredVariable::assign_in_replica(const ElementUpdate& update, const Tensor& value,
                                         int local_replica) const {
  const VariableAggregation aggregation = options().aggregation;
  update.apply(component(local_replica), aggregation == VariableAggregation::kNone
                                             ? value
                                             : strategy().aggregate(aggregation, value, local_replica));
}

void MirroredVariable::assign_across(const ElementUpdate& update, const Tensor& value) const {
  // The value may be one of the components, which the first update would change for the others.
  const Tensor stable = components().size() > 1 ? value.clone() : value;
  for (const Tensor& component : components()) update.apply(component, stable);
}

void MirroredVariable::require_scatter(const RowUpdate& update) const {
  const VariableAggregation aggregation = options().aggregation;
  if (update.aggregates || aggregation == VariableAggregation::kNone ||
      aggregation == VariableAggregation::kOnlyFirstReplica) {
    return;
  }
  throw Unimplemented(
      "{} of variable '{}' with aggregation {}: the rows of several replicas can be put together for add, "
      "sub, mul and div only; use aggregation none or only_first_replica",
      update.name, options().name, to_string(aggregation));
}

void MirroredVariable::scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                          int local_replica) const {
  const VariableAggregation aggregation = options().aggregation;
  update.apply(component(local_replica), aggregation == VariableAggregation::kNone
                                             ? rows
                                             : strategy().aggregate_rows(aggregation, rows, local_replica));
}

void MirroredVariable::scatter_across(const RowUpdate& update, const IndexedSlices& rows) const {
  const IndexedSlices stable{rows.values.clone(), rows.indices, rows.dense_shape};
  for (const Tensor& component : components()) update.apply(component, stable);
}

}  // namespace cohort
