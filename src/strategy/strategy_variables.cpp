// What a strategy does for its variables: places them, starts them with the chief's value,
// aggregates what replicas write, knows which ones are its own, and updates their components.
#include <algorithm>
#include <memory>

#include <cohort/strategy/strategy_extended.h>

#include "collective_scopes.h"
#include "leaf_reduction.h"
#include "value/thread_scopes.h"

namespace cohort {
namespace {

/// Not for NONE, which aggregates nothing, nor for ONLY_FIRST_REPLICA, which moves one value.
ReduceOp reduce_op(VariableAggregation aggregation) {
  return aggregation == VariableAggregation::kSum ? ReduceOp::kSum : ReduceOp::kMean;
}

IndexedSlices no_rows(const IndexedSlices& like) {
  return {like.values.rows(0, 0), like.indices.rows(0, 0), like.dense_shape};
}

}  // namespace

VariablePlacement StrategyExtended::variable_placement() const noexcept {
  if (layout_.variable_keeper != nullptr) return VariablePlacement::kElsewhere;
  return layout_.parameter_device ? VariablePlacement::kSingleCopy : VariablePlacement::kMirrored;
}

Tensor StrategyExtended::from_chief(const Tensor& value, CallPurpose& purpose) {
  if (workers() == 1) return value;
  Tensor result = value.clone();
  WorkersCollective collective(*this, purpose);
  workers_communicator().broadcast(result, 0);
  collective.end();
  return result;
}

Tensor StrategyExtended::aggregate(VariableAggregation aggregation, const Tensor& value, int local_replica,
                                   CallPurpose& purpose) {
  if (aggregation == VariableAggregation::kOnlyFirstReplica) {
    Tensor result = value.clone();
    ReplicaCollective collective(*this, local_replica, {}, purpose);
    collective.communicator().broadcast(result, 0);
    return result;
  }
  const TensorOrSlices leaf = value;
  return std::get<Tensor>(
      all_reduce_for(purpose, local_replica, reduce_op(aggregation), {&leaf, 1}, {}).front());
}

IndexedSlices StrategyExtended::aggregate_rows(VariableAggregation aggregation, const IndexedSlices& rows,
                                               int local_replica, CallPurpose& purpose) {
  if (aggregation == VariableAggregation::kOnlyFirstReplica) {
    // Gathered without arithmetic, which bool rows do not have.
    if (num_replicas_in_sync() == 1) return rows;
    ReplicaCollective collective(*this, local_replica, {}, purpose);
    Communicator& replicas = collective.communicator();
    const IndexedSlices mine = replicas.rank() == 0 ? rows : no_rows(rows);
    return all_gather_slices(replicas, {&mine, 1}).front();
  }
  const TensorOrSlices mine = rows;
  return std::get<IndexedSlices>(
      all_reduce_for(purpose, local_replica, reduce_op(aggregation), {&mine, 1}, {}).front());
}

Tensor StrategyExtended::aggregate_components(VariableAggregation aggregation,
                                              std::span<const Tensor> components, CallPurpose& purpose) {
  if (aggregation == VariableAggregation::kOnlyFirstReplica)
    return from_chief(components.front(), purpose).clone();
  StructureReduction by_replica{{Contributions::kPerReplica}, {}, {}, Device()};
  for (const Tensor& component : components) {
    by_replica.components.push_back({component});
    by_replica.fingerprints.push_back(structure_fingerprint(component));
  }
  or_abort_workers([&] { require_reducible(reduce_op(aggregation), by_replica); });
  return std::get<Tensor>(
      reduce_for(purpose, reduce_op(aggregation), {&by_replica, 1}, {}).front().front().front());
}

void StrategyExtended::adopt(const std::shared_ptr<VariableState>& variable) {
  std::erase_if(variables_, [](const auto& known) { return known.expired(); });
  variables_.push_back(variable);
}

VariableCreatorScope StrategyExtended::colocate_vars_with(const Variable& variable) const {
  if (!is_default() && current_mode().strategy != this) {
    throw WrongContext("colocate_vars_with of {} outside its scope; open scope() first", strategy_name());
  }
  if (!is_default() && !variable_created_in_scope(variable)) {
    throw InvalidArgument("colocate_vars_with: variable '{}' was not made in the scope of {}",
                          variable.name(), strategy_name());
  }
  // What cuts variables into shards must know before a creator is asked for one.
  struct Mark {
    Mark() noexcept { ++thread_scopes().colocating; }
    ~Mark() { --thread_scopes().colocating; }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
  };
  return VariableCreatorScope(
      [variable, mark = std::make_shared<const Mark>()](const NextCreator& next, VariableOptions options) {
        options.colocate_with = &variable;
        return next(std::move(options));
      });
}

bool StrategyExtended::variable_created_in_scope(const Variable& variable) const noexcept {
  return variable.state()->owner() == (is_default() ? nullptr : this);
}

std::optional<Variable> StrategyExtended::value_container(const Tensor& component) const {
  for (const auto& known : variables_) {
    const std::shared_ptr<VariableState> variable = known.lock();
    if (variable == nullptr) continue;
    const auto is_it = [&](const Tensor& own) {
      return own.buffer() == component.buffer() && own.shape() == component.shape();  // and no part of it
    };
    if (std::ranges::any_of(variable->components(), is_it)) return Variable(variable);
  }
  return std::nullopt;
}

void StrategyExtended::require_updatable(const Variable& variable) const {
  require_cross_replica("update");
  const VariableOwner* owner = variable.state()->owner();
  if (owner == this) return;
  if (owner != nullptr) {
    throw WrongContext("update of variable '{}', which belongs to {}, by {}: mixing different strategies",
                       variable.name(), owner->strategy_name(), strategy_name());
  }
  if (variable_placement() != VariablePlacement::kMirrored) return;
  throw InvalidArgument(
      "update of plain variable '{}' by {}: it has no component per replica; make the variable inside "
      "scope()",
      variable.name(), strategy_name());
}

bool StrategyExtended::keeps_equal(const Variable& variable) const noexcept {
  return variable_placement() == VariablePlacement::kMirrored &&
         variable.synchronization() == VariableSynchronization::kOnWrite &&
         variable.aggregation() != VariableAggregation::kNone;
}

void StrategyExtended::update_component(int component, Device device,
                                        const std::function<void(int component)>& body) {
  if (is_default())
    return body(component);  // which leaves the context as it is: the caller is the only replica
  const ContextScope scope({ContextKind::kUpdate, this, nullptr, component, device});
  body(component);
}

void StrategyExtended::update_components(const Variable& variable,
                                         const std::function<void(int component)>& body) {
  if (variable.state()->is_kept_elsewhere()) return update_component(0, parameter_devices_.front(), body);
  int number = 0;
  for (const Tensor& component : variable.components()) update_component(number++, component.device(), body);
}

void StrategyExtended::update_components(std::span<const Device> devices,
                                         const std::function<void(int component)>& body) {
  require_cross_replica("update");
  for (const Device device : devices) {
    const auto place = std::ranges::find(parameter_devices_, device);
    if (place == parameter_devices_.end()) {
      throw InvalidArgument("update on {}: {} keeps no variables there", to_string(device), strategy_name());
    }
    update_component(static_cast<int>(place - parameter_devices_.begin()), device, body);
  }
}

}  // namespace cohort
