#include <cohort/value/variable.h>

#include <algorithm>
#include <exception>
#include <functional>

#include <fmt/format.h>

#include <cohort/value/detail/variable_state.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/variable_creator_scope.h>

#include "variable_kinds.h"

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

namespace {

/// The tensor itself, or a copy if it shares memory with any of `components`: an update would change it while
/// it is still read. Other libraries may have made a tensor over the same memory.
Tensor apart_from(std::span<const Tensor> components, const Tensor& tensor) {
  const std::less<const std::byte*> before;
  const auto is_shared = [&](const Tensor& component) {
    return before(component.data(), tensor.data() + tensor.bytes()) &&
           before(tensor.data(), component.data() + component.bytes());
  };
  return std::ranges::any_of(components, is_shared) ? tensor.clone() : tensor;
}

}  // namespace

VariableState::VariableState(VariableOptions options, std::shared_ptr<VariableOwner> owner,
                             std::vector<Tensor> components)
    : options_(std::move(options)),
      owner_(std::move(owner)),
      shape_(components.front().shape()),
      dtype_(components.front().dtype()),
      by_replica_(std::move(components)),
      count_(by_replica_.size()),
      number_(owner_ == nullptr ? 0 : owner_->next_variable_number()) {
  if (owner_ != nullptr && count_ == 1)
    by_replica_.resize(static_cast<std::size_t>(owner_->local_replicas()), by_replica_.front());
  replicas_ = static_cast<unsigned>(by_replica_.size());
}

VariableState::VariableState(VariableOptions options, std::shared_ptr<VariableOwner> owner,
                             const Shape& shape, DType dtype, std::uint64_t number)
    : options_(std::move(options)),
      owner_(std::move(owner)),
      shape_(shape),
      dtype_(dtype),
      count_(0),
      replicas_(0),
      number_(number) {}

void VariableState::apply_elsewhere(const OptimizerRecipe& /*optimizer*/,
                                    const TensorOrSlices& /*gradient*/) const {
  throw Internal("variable '{}' is not kept elsewhere", options_.name);
}

Tensor VariableState::read_slot_elsewhere(std::uint8_t /*slot*/) const {
  throw Internal("the slots of variable '{}' are not kept elsewhere", options_.name);
}

void VariableState::assign_slot_elsewhere(std::uint8_t /*slot*/, const Tensor& /*value*/) const {
  throw Internal("the slots of variable '{}' are not kept elsewhere", options_.name);
}

void VariableState::require_own_strategy(std::string_view what) const {
  const VariableOwner* active = current_mode().strategy;
  if (active == nullptr || owner_ == nullptr || active == owner_.get()) return;
  throw WrongContext(
      "{} of variable '{}', which belongs to {}, while {} is active: mixing different strategies", what,
      options_.name, owner_->strategy_name(), active->strategy_name());
}

void VariableState::require_one_writer(std::string_view what) const {
  const ContextMode& mode = current_mode();
  if (owner_ != nullptr || mode.kind != ContextKind::kReplica || mode.strategy->local_replicas() == 1) return;
  throw WrongContext(
      "{} of plain variable '{}' by one of {} concurrent replicas; make the variable inside the scope "
      "of {}, so that each replica has a component",
      what, options_.name, mode.strategy->local_replicas(), mode.strategy->strategy_name());
}

Tensor VariableState::read_elsewhere() const {
  require_own_strategy("read");
  // A plain variable has one component, which every replica of the process reads.
  if (current_mode().kind == ContextKind::kReplica && !is_kept_elsewhere()) return component(0);
  return read_across();
}

void VariableState::abort_replicas(const std::exception_ptr& error) const {
  const ContextMode& mode = current_mode();
  if (mode.kind == ContextKind::kReplica && own_component() != nullptr && communicates_in_replica())
    owner_->abort_replicas(mode.local_replica, error);
}

void VariableState::assign(const ElementUpdate& update, const Tensor& value) const {
  require_own_strategy(update.operation.name);
  or_abort_replicas([&] {
    if (value.dtype() != dtype_ || value.shape() != shape_) {
      throw InvalidArgument("{} of {} to variable '{}', which is {}{}: dtype and shape must agree",
                            update.operation.name, describe(value), options_.name, to_string(dtype_),
                            to_string(shape_));
    }
    const ContextMode& mode = current_mode();
    const Tensor* own = own_component();
    if (own == nullptr) {
      require_one_writer(update.operation.name);
      assign_across(update, value);
    } else if (mode.kind == ContextKind::kReplica) {
      assign_in_replica(update, value, mode.local_replica);
    } else {
      update.apply(*own, value);
    }
  });
}

void VariableState::scatter(const RowUpdate& update, const IndexedSlices& rows) const {
  require_own_strategy(update.operation.name);
  or_abort_replicas([&] {
    require_scatter(update);
    validate(rows);
    if (rows.values.dtype() != dtype_ || rows.dense_shape != shape_) {
      throw InvalidArgument("{} of {} to variable '{}', which is {}{}: dtype and dense shape must agree",
                            update.operation.name, describe(rows), options_.name, to_string(dtype_),
                            to_string(shape_));
    }
    const IndexedSlices apart{apart_from(components(), rows.values), apart_from(components(), rows.indices),
                              rows.dense_shape};
    const ContextMode& mode = current_mode();
    const Tensor* own = own_component();
    if (own == nullptr) {
      require_one_writer(update.operation.name);
      scatter_across(update, apart);
    } else if (mode.kind == ContextKind::kReplica) {
      scatter_in_replica(update, apart, mode.local_replica);
    } else {
      update.apply(*own, apart);
    }
  });
}

Tensor VariableState::read_across() const {
  const auto is_here = [](const Tensor& component) { return component.device() == current_device(); };
  const auto here = std::ranges::find_if(components(), is_here);
  return (here != components().end() ? *here : components().front()).clone();
}

void VariableState::assign_in_replica(const ElementUpdate& update, const Tensor& value,
                                      int local_replica) const {
  update.apply(component(local_replica), value);
}

void VariableState::scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                       int local_replica) const {
  update.apply(component(local_replica), rows);
}

void VariableState::assign_across(const ElementUpdate& update, const Tensor& value) const {
  const Tensor apart = apart_from(components(), value);
  for (const Tensor& component : components()) update.apply(component, apart);
}

void VariableState::scatter_across(const RowUpdate& update, const IndexedSlices& rows) const {
  for (const Tensor& component : components()) update.apply(component, rows);
}

void VariableState::require_scatter(const RowUpdate& /*update*/) const {}

const Tensor& VariableState::writable_elsewhere() const {
  require_own_strategy("update");
  require_one_writer("update");
  if (owner_ == nullptr) return component(0);
  if (is_kept_elsewhere()) {
    throw WrongContext(
        "variable '{}' is kept by a parameter server: there is no component here; read() it, or "
        "change it by assign",
        options_.name);
  }
  const ContextMode& mode = current_mode();
  if (mode.kind == ContextKind::kUpdate) return component(mode.local_replica);
  if (mode.kind == ContextKind::kReplica) {
    throw WrongContext(
        "variable '{}' has one copy, which {} replicas share; "
        "change it by assign, or inside extended().update",
        options_.name, by_replica_.size());
  }
  throw WrongContext(
      "variable '{}' has one component per replica, and this code is not inside a replica; "
      "call it inside run()",
      options_.name);
}

}  // namespace cohort
