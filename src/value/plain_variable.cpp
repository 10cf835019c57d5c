#include "plain_variable.h"

#include "element_update.h"
#include "row_update.h"

namespace cohort {

PlainVariable::PlainVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner, Tensor component)
    : VariableState(std::move(options), std::move(owner), {std::move(component)}) {}

Tensor PlainVariable::read_across() const { return component(0).clone(); }

void PlainVariable::assign_in_replica(const ElementUpdate& update, const Tensor& value,
                                      int /*local_replica*/) const {
  assign_across(update, value);
}

void PlainVariable::assign_across(const ElementUpdate& update, const Tensor& value) const {
  update.apply(component(0), value);
}

void PlainVariable::require_scatter(const RowUpdate& /*update*/) const {}

void PlainVariable::scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                       int /*local_replica*/) const {
  scatter_across(update, rows);
}

void PlainVariable::scatter_across(const RowUpdate& update, const IndexedSlices& rows) const {
  update.apply(component(0), rows);
}

}  // namespace cohort
