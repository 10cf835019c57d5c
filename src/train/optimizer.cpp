#include <cohort/train/optimizer.h>

#include <unordered_map>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/strategy/strategy.h>

namespace cohort {
namespace {

void require_fitting(const GradientAndVariable& pair) {
  const Variable& variable = pair.variable;
  if (pair.gradient.shape() != variable.shape() || pair.gradient.dtype() != variable.dtype()) {
    throw InvalidArgument("apply_gradients: the gradient of variable '{}' is {}, but the variable is {}{}",
                          variable.name(), describe(pair.gradient), to_string(variable.dtype()),
                          to_string(variable.shape()));
  }
  if (!is_floating(variable.dtype())) {
    throw InvalidArgument("apply_gradients: variable '{}' is {}; only floating variables can be optimized",
                          variable.name(), to_string(variable.dtype()));
  }
}

/// A fingerprint of these variables in their order, the same on all workers.
std::uint64_t fingerprint_of_variables(const std::vector<GradientAndVariable>& gradients) {
  Fingerprint fingerprint;
  for (const GradientAndVariable& pair : gradients) fingerprint.add(pair.variable.state()->number());
  return fingerprint.value();
}

void require_same_variables(const Strategy& strategy, const PerReplica<std::uint64_t>& of_replicas) {
  const int first = strategy.extended().first_replica_id();
  for (std::size_t i = 1; i < of_replicas.size(); ++i) {
    if (of_replicas[i] == of_replicas[0]) continue;
    throw InvalidArgument(
        "apply_gradients: replica {} passes other variables than replica {}, or in another order; all must "
        "pass the same",
        first + static_cast<int>(i), first);
  }
}

void sum(const ReplicaContext& replica, std::vector<Tensor>& gradients, GradientAggregation aggregation) {
  if (aggregation == GradientAggregation::kSum)
    gradients = replica.all_reduce(ReduceOp::kSum, gradients);
  else
    replica.all_reduce_in_place(ReduceOp::kSum, gradients);
}

/// Aggregates the gradients. Gradients of the same shape would be summed even if they belonged to different
/// variables, so the replicas compare the variables as well.
void aggregate(const ReplicaContext& replica, std::vector<Tensor>& gradients, std::uint64_t variables,
               GradientAggregation aggregation) {
  if (replica.num_replicas_in_sync() == 1) return sum(replica, gradients, aggregation);
  if (replica.strategy().extended().has_own_cross_device_ops()) {  // for those, replicas meet anyway
    replica.merge_call(require_same_variables, variables);
    return sum(replica, gradients, aggregation);
  }
  try {
    const CommunicationScope scope(replica.communicator(), {}, variables);
    sum(replica, gradients, aggregation);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        error.origin(),
        fmt::format("apply_gradients: all replicas must pass gradients of the same variables, "
                    "in the same order: {}",
                    error.what()));
  }
}

/// One copy that several replicas share: it is updated once, while they wait.
bool is_shared(const Variable& variable) {
  const VariableOwner* owner = variable.state()->owner();
  return owner != nullptr && owner->local_replicas() > 1 && variable.components().size() == 1;
}

}  // namespace

struct Optimizer::ReplicaState {
  std::int64_t steps = 0;
  /// By variable, which is kept alive: a later one at the same address would be taken for it.
  std::unordered_map<std::shared_ptr<VariableState>, std::vector<Variable>> slots;

  // Lists of a step, kept with their memory: a step like the one before allocates nothing.
  std::vector<Tensor> gradients;
  std::vector<std::size_t> shared;
  std::vector<Tensor> slot_components;
};

Optimizer::Optimizer(std::vector<std::string> slot_names) : slot_names_(std::move(slot_names)) {}

Optimizer::~Optimizer() = default;

Optimizer::ReplicaState& Optimizer::state_of_this_replica() {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ReplicaState>& state = states_[current_mode().local_replica];
  if (state == nullptr) state = std::make_unique<ReplicaState>();
  return *state;
}

const std::vector<Variable>& Optimizer::slots_of(ReplicaState& state, const Variable& variable) const {
  if (const auto found = state.slots.find(variable.state()); found != state.slots.end()) return found->second;
  std::vector<Variable> slots;
  slots.reserve(slot_names_.size());
  for (const std::string& name : slot_names_)
    slots.emplace_back(VariableOptions{.shape = variable.shape(),
                                       .dtype = variable.dtype(),
                                       .name = fmt::format("{}/{}", variable.name(), name),
                                       .trainable = false,
                                       .colocate_with = &variable});
  return state.slots.emplace(variable.state(), std::move(slots)).first->second;
}

void Optimizer::update_component(ReplicaState& state, const Variable& variable,
                                 const Tensor& gradient) const {
  state.slot_components.clear();
  for (const Variable& slot : slots_of(state, variable))
    state.slot_components.push_back(slot.replica_component());
  update(variable.replica_component(), state.slot_components, gradient, state.steps);
}

void Optimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients,
                                GradientAggregation aggregation) {
  const ReplicaContext* replica = get_replica_context();
  if (replica == nullptr) {
    throw WrongContext(
        "apply_gradients was called in cross-replica context; call it inside the function given to run()");
  }
  const auto require_all_fitting = [&] {
    for (const GradientAndVariable& pair : gradients) require_fitting(pair);
  };
  if (aggregation == GradientAggregation::kNone)
    require_all_fitting();
  else
    replica->or_abort_replicas(require_all_fitting);

  ReplicaState& state = state_of_this_replica();
  state.gradients.clear();
  for (const GradientAndVariable& pair : gradients) state.gradients.push_back(pair.gradient);
  if (aggregation != GradientAggregation::kNone)
    aggregate(*replica, state.gradients, fingerprint_of_variables(gradients), aggregation);

  ++state.steps;
  state.shared.clear();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Variable& variable = gradients[i].variable;
    if (is_shared(variable)) {
      static_cast<void>(slots_of(state, variable));  // made while all replicas are here
      state.shared.push_back(i);
    } else {
      update_component(state, variable, state.gradients[i]);
    }
  }
  if (!state.shared.empty()) update_shared(*replica, state, gradients);
  state.gradients.clear();  // they are the caller's
}

void Optimizer::update_shared(const ReplicaContext& replica, ReplicaState& state,
                              const std::vector<GradientAndVariable>& gradients) const {
  replica.merge_call([&](const Strategy& strategy) {
    for (const std::size_t i : state.shared) {
      strategy.extended().update(gradients[i].variable, [&](const Variable& variable) {
        update_component(state, variable, state.gradients[i]);
      });
    }
  });
}

std::int64_t Optimizer::iterations() const {
  const std::lock_guard lock(mutex_);
  return states_.empty() ? 0 : states_.begin()->second->steps;
}

std::vector<Variable> Optimizer::slots(const Variable& variable) const {
  const std::lock_guard lock(mutex_);
  if (states_.empty()) return {};
  const auto& slots = states_.begin()->second->slots;
  const auto found = slots.find(variable.state());
  return found == slots.end() ? std::vector<Variable>() : found->second;
}

}  // namespace cohort
