#include <cohort/train/optimizer.h>

#include <unordered_map>

#include <fmt/format.h>

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

/// What the variables are updated with.
std::vector<Tensor> aggregate(const ReplicaContext& replica, const std::vector<Tensor>& gradients,
                              GradientAggregation aggregation) {
  switch (aggregation) {
    case GradientAggregation::kSum: return replica.all_reduce(ReduceOp::kSum, gradients);
    case GradientAggregation::kSumInPlace: replica.all_reduce_in_place(ReduceOp::kSum, gradients); break;
    case GradientAggregation::kNone: break;
  }
  return gradients;
}

/// One copy that several replicas share: it is updated once, while they wait.
bool is_shared(const Variable& variable) {
  const VariableOwner* owner = variable.state()->owner();
  return owner != nullptr && owner->local_replicas() > 1 && variable.components().size() == 1;
}

}  // namespace

struct Optimizer::ReplicaState {
  std::int64_t steps = 0;
  /// By variable, which lives on: another one at its address would be taken for it.
  std::unordered_map<std::shared_ptr<VariableState>, std::vector<Variable>> slots;
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
  const auto [place, is_new] = state.slots.try_emplace(variable.state());
  if (is_new) {
    for (const std::string& name : slot_names_)
      place->second.emplace_back(VariableOptions{.shape = variable.shape(),
                                                 .dtype = variable.dtype(),
                                                 .name = fmt::format("{}/{}", variable.name(), name),
                                                 .trainable = false,
                                                 .colocate_with = &variable});
  }
  return place->second;
}

void Optimizer::update_component(const Variable& variable, const std::vector<Variable>& slots,
                                 const Tensor& gradient, std::int64_t step) const {
  std::vector<Tensor> components;
  components.reserve(slots.size());
  for (const Variable& slot : slots) components.push_back(slot.replica_component());
  update(variable.replica_component(), components, gradient, step);
}

void Optimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients,
                                GradientAggregation aggregation) {
  const ReplicaContext* replica = get_replica_context();
  if (replica == nullptr) {
    throw WrongContext(
        "apply_gradients was called in cross-replica context; call it inside the function given to run()");
  }
  std::vector<Tensor> values;
  values.reserve(gradients.size());
  for (const GradientAndVariable& pair : gradients) {
    require_fitting(pair);
    values.push_back(pair.gradient);
  }
  const std::vector<Tensor> sums = aggregate(*replica, values, aggregation);

  ReplicaState& state = state_of_this_replica();
  ++state.steps;
  std::vector<std::size_t> shared;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Variable& variable = gradients[i].variable;
    const std::vector<Variable>& slots = slots_of(state, variable);
    if (is_shared(variable))
      shared.push_back(i);
    else
      update_component(variable, slots, sums[i], state.steps);
  }
  if (shared.empty()) return;
  replica->merge_call([&](const Strategy& strategy) {
    for (const std::size_t i : shared) {
      strategy.extended().update(gradients[i].variable, [&](const Variable& variable) {
        update_component(variable, slots_of(state, variable), sums[i], state.steps);
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
