#include <cohort/value/variable.h>

#include <fmt/format.h>

#include <cohort/value/variable_creator_scope.h>

#include "element_update.h"
#include "row_update.h"

namespace cohort {

std::string_view to_string(VariableSynchronization synchronization) noexcept {
  switch (synchronization) {
    case VariableSynchronization::kAuto: return "auto";
    case VariableSynchronization::kNone: return "none";
    case VariableSynchronization::kOnWrite: return "on_write";
    case VariableSynchronization::kOnRead: return "on_read";
  }
  return "unknown";
}

std::string_view to_string(VariableAggregation aggregation) noexcept {
  switch (aggregation) {
    case VariableAggregation::kNone: return "none";
    case VariableAggregation::kSum: return "sum";
    case VariableAggregation::kMean: return "mean";
    case VariableAggregation::kOnlyFirstReplica: return "only_first_replica";
  }
  return "unknown";
}

Variable::Variable(VariableOptions options)
    : Variable(VariableCreatorScope::create(VariableCreatorScope::innermost(), std::move(options))) {}

std::string Variable::component_name(int component) const {
  return component == 0 ? name() : fmt::format("{}/replica_{}", name(), component);
}

const Variable& Variable::assign(const Tensor& value) const {
  state_->assign(kAssign, value);
  return *this;
}
const Variable& Variable::assign_add(const Tensor& value) const {
  state_->assign(kAssignAdd, value);
  return *this;
}
const Variable& Variable::assign_sub(const Tensor& value) const {
  state_->assign(kAssignSub, value);
  return *this;
}

const Variable& Variable::scatter_add(const IndexedSlices& rows) const {
  state_->scatter(kScatterAdd, rows);
  return *this;
}
const Variable& Variable::scatter_sub(const IndexedSlices& rows) const {
  state_->scatter(kScatterSub, rows);
  return *this;
}
const Variable& Variable::scatter_mul(const IndexedSlices& rows) const {
  state_->scatter(kScatterMul, rows);
  return *this;
}
const Variable& Variable::scatter_div(const IndexedSlices& rows) const {
  state_->scatter(kScatterDiv, rows);
  return *this;
}
const Variable& Variable::scatter_min(const IndexedSlices& rows) const {
  state_->scatter(kScatterMin, rows);
  return *this;
}
const Variable& Variable::scatter_max(const IndexedSlices& rows) const {
  state_->scatter(kScatterMax, rows);
  return *this;
}
const Variable& Variable::scatter_update(const IndexedSlices& rows) const {
  state_->scatter(kScatterUpdate, rows);
  return *this;
}

}  // namespace cohort
