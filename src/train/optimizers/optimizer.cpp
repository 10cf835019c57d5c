#include <cohort/train/optimizers/optimizer.h>

#include <cmath>
#include <optional>
#include <type_traits>
#include <unordered_map>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/strategy/strategy.h>

#include "device/optimizer_step.h"

namespace cohort {
namespace {

void require_fitting(const TensorOrSlices& gradient, const Variable& variable) {
  const auto* slices = std::get_if<IndexedSlices>(&gradient);
  const Shape& shape = slices != nullptr ? slices->dense_shape : std::get<Tensor>(gradient).shape();
  if (shape != variable.shape() || values_of(gradient).dtype() != variable.dtype()) {
    throw InvalidArgument("apply_gradients: the gradient of variable '{}' is {}, but the variable is {}{}",
                          variable.name(), describe(gradient), to_string(variable.dtype()),
                          to_string(variable.shape()));
  }
  if (slices != nullptr) validate(*slices);
  if (!is_floating(variable.dtype())) {
    throw InvalidArgument("apply_gradients: variable '{}' is {}; only floating variables can be optimized",
                          variable.name(), to_string(variable.dtype()));
  }
}

/// What gradients are for: gradients of the same shape would be summed even if they belonged to different
/// variables, so the replicas compare the variables as well.
class StepPurpose final : public CallPurpose {
 public:
  StepPurpose(const std::vector<GradientAndVariable>& gradients,
              const std::vector<SparseGradientAndVariable>& sparse, Device device)
      : CallPurpose(fingerprint_of_variables(gradients, sparse), Caller::kReplica, device),
        gradients_(gradients),
        sparse_(sparse) {}

 private:
  /// Of the variables in their order, which have the same numbers on all workers.
  static std::uint64_t fingerprint_of_variables(const std::vector<GradientAndVariable>& gradients,
                                                const std::vector<SparseGradientAndVariable>& sparse) {
    static constexpr std::uint64_t kApplyGradients = fingerprint_of("apply_gradients");
    Fingerprint fingerprint;
    fingerprint.add(kApplyGradients);
    for (const GradientAndVariable& pair : gradients) fingerprint.add(pair.variable.state()->number());
    for (const SparseGradientAndVariable& pair : sparse) fingerprint.add(pair.variable.state()->number());
    return fingerprint.value();
  }

  [[nodiscard]] PurposeWords own_words() const override {
    std::string names;
    std::string numbers;
    const auto add = [&](const Variable& variable) {
      names += (names.empty() ? "" : ", ") + variable.name();
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", variable.state()->number());
    };
    for (const GradientAndVariable& pair : gradients_) add(pair.variable);
    for (const SparseGradientAndVariable& pair : sparse_) add(pair.variable);
    return {fmt::format("applies gradients of {}", names.empty() ? "no variables" : names),
            fmt::format("variables number {}", numbers)};
  }

  const std::vector<GradientAndVariable>& gradients_;
  const std::vector<SparseGradientAndVariable>& sparse_;
};

void sum(const ReplicaContext& replica, std::vector<Tensor>& gradients, GradientAggregation aggregation) {
  if (aggregation == GradientAggregation::kSum)
    gradients = replica.all_reduce(ReduceOp::kSum, gradients);
  else
    replica.all_reduce_in_place(ReduceOp::kSum, gradients);
}

void aggregate(const ReplicaContext& replica, std::vector<Tensor>& gradients, StepPurpose& purpose,
               GradientAggregation aggregation) {
  if (replica.num_replicas_in_sync() == 1) return sum(replica, gradients, aggregation);
  // Where the program has operations of its own, replicas meet, also to compare.
  if (replica.strategy().extended().has_own_cross_device_ops())
    replica.merge_call_for(purpose, [](const Strategy&) {});
  const CommunicationScope scope(replica.communicator(), {}, purpose);
  sum(replica, gradients, aggregation);
}

/// The rows of all replicas, concatenated.
std::vector<IndexedSlices> summed_rows(const ReplicaContext& replica,
                                       const std::vector<SparseGradientAndVariable>& sparse,
                                       StepPurpose& purpose, GradientAggregation aggregation) {
  std::vector<IndexedSlices> gradients;
  gradients.reserve(sparse.size());
  for (const SparseGradientAndVariable& pair : sparse) gradients.push_back(pair.gradient);
  if (gradients.empty() || aggregation == GradientAggregation::kNone || replica.num_replicas_in_sync() == 1)
    return gradients;
  const CommunicationScope scope(replica.communicator(), {}, purpose);
  return replica.all_reduce(ReduceOp::kSum, gradients);
}

/// One copy that several replicas share: it is updated once, while they wait.
bool is_shared(const Variable& variable) {
  const VariableOwner* owner = variable.state()->owner();
  return owner != nullptr && owner->local_replicas() > 1 && variable.components().size() == 1;
}

const ReplicaContext& require_replica() {
  if (const ReplicaContext* replica = get_replica_context()) return *replica;
  throw WrongContext(
      "apply_gradients was called in cross-replica context; call it inside the function given to run()");
}

/// Slots belong to the strategy of their variable, and replicas make theirs at the first update.
void require_slots_here(const Variable& variable) {
  const ContextMode& mode = current_mode();
  if (mode.kind == ContextKind::kReplica)
    throw WrongContext("make_slots was called inside run(); call it in cross-replica context");
  if (variable.state()->is_kept_elsewhere())
    throw InvalidArgument("make_slots: variable '{}' is on a parameter server, which keeps its slots",
                          variable.name());
  if (variable.state()->owner() != mode.strategy)
    throw WrongContext("make_slots: variable '{}' was not made in this scope; open the scope of its strategy",
                       variable.name());
}

double checked(double learning_rate) {
  if (std::isfinite(learning_rate) && learning_rate >= 0) return learning_rate;
  throw InvalidArgument("the learning rate is {}; it must be a finite number, and not negative",
                        learning_rate);
}

void require_examples(const ApplyOptions& options) {
  if (!options.examples || (std::isfinite(*options.examples) && *options.examples >= 0)) return;
  throw InvalidArgument("apply_gradients: a replica cannot have the gradients of {} examples",
                        *options.examples);
}

/// A new tensor, for a gradient that travels.
TensorOrSlices multiplied(const TensorOrSlices& gradient, double factor) {
  if (factor == 1) return gradient;
  const Tensor product = values_of(gradient).on_host().clone();
  visit_dtype(product.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>)
      for (T& element : product.span<T>())
        element = T(static_cast<Wide<T>>(element) * static_cast<Wide<T>>(factor));
  });
  const auto* slices = std::get_if<IndexedSlices>(&gradient);
  if (slices == nullptr) return product;
  return IndexedSlices{product, slices->indices, slices->dense_shape};
}

/// Where gradients are summed, the other replicas wait for this one.
template <class Check>
void or_abort_replicas(const ReplicaContext& replica, GradientAggregation aggregation, Check&& check) {
  if (aggregation == GradientAggregation::kNone)
    check();
  else
    replica.or_abort_replicas(std::forward<Check>(check));
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
  std::optional<Tensor> examples;

  /// The number of examples becomes the last of the gradients, to be summed with them.
  void add_examples(double number, Device device) {
    const bool is_wide = !gradients.empty() && gradients.front().dtype() == DType::kFloat64;
    const DType dtype = is_wide ? DType::kFloat64 : DType::kFloat32;
    if (!gradients.empty()) device = gradients.front().device();
    if (!examples || examples->dtype() != dtype || examples->device() != device)
      examples = Tensor::zeros({}, dtype, device);
    examples->fill(number);
    gradients.push_back(*examples);
  }
  double take_examples() {
    const double sum = gradients.back().on_host().item<double>();
    gradients.pop_back();
    return sum;
  }
};

Optimizer::Optimizer(double learning_rate, std::vector<std::string> slot_names)
    : rate_(learning_rate),
      slot_names_(std::move(slot_names)),
      beginning_(std::make_unique<ReplicaState>()) {}

Optimizer::~Optimizer() = default;

Optimizer::ReplicaState& Optimizer::state_of_this_replica() {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ReplicaState>& state = states_[current_mode().local_replica];
  if (state == nullptr) state = std::make_unique<ReplicaState>(*beginning_);
  return *state;
}

std::vector<Variable> Optimizer::new_slots(const Variable& variable) const {
  std::vector<Variable> slots;
  slots.reserve(slot_names_.size());
  for (const std::string& name : slot_names_)
    slots.emplace_back(VariableOptions{.shape = variable.shape(),
                                       .dtype = variable.dtype(),
                                       .name = fmt::format("{}/{}", variable.name(), name),
                                       .name_may_differ = variable.state()->options().name_may_differ,
                                       .trainable = false,
                                       .colocate_with = &variable});
  return slots;
}

const std::vector<Variable>& Optimizer::slots_of(ReplicaState& state, const Variable& variable) const {
  const auto found = state.slots.find(variable.state());
  if (found != state.slots.end()) return found->second;
  return state.slots.emplace(variable.state(), new_slots(variable)).first->second;
}

void Optimizer::update_component(ReplicaState& state, const Variable& variable, const Tensor& gradient,
                                 const StepArguments& arguments) const {
  state.slot_components.clear();
  for (const Variable& slot : slots_of(state, variable))
    state.slot_components.push_back(slot.replica_component());
  update(variable.replica_component(), state.slot_components, gradient, arguments);
}

void Optimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients,
                                const ApplyOptions& options) {
  const ReplicaContext& replica = require_replica();
  or_abort_replicas(replica, options.aggregation, [&] {
    require_examples(options);
    for (const GradientAndVariable& pair : gradients) require_fitting(pair.gradient, pair.variable);
  });
  step(replica, gradients, {}, options);
}

void Optimizer::apply_sparse_gradients(const std::vector<SparseGradientAndVariable>& sparse,
                                       const std::vector<GradientAndVariable>& gradients,
                                       const ApplyOptions& options) {
  const ReplicaContext& replica = require_replica();
  std::vector<GradientAndVariable> dense = gradients;
  std::vector<SparseGradientAndVariable> elsewhere;
  or_abort_replicas(replica, options.aggregation, [&] {
    require_examples(options);
    for (const GradientAndVariable& pair : gradients) require_fitting(pair.gradient, pair.variable);
    for (const SparseGradientAndVariable& pair : sparse) {
      require_fitting(pair.gradient, pair.variable);
      if (pair.variable.state()->is_kept_elsewhere())
        elsewhere.push_back(pair);
      else
        dense.push_back({densify(pair.gradient), pair.variable});
    }
  });
  step(replica, dense, elsewhere, options);
}

void Optimizer::step(const ReplicaContext& replica, const std::vector<GradientAndVariable>& gradients,
                     const std::vector<SparseGradientAndVariable>& elsewhere, const ApplyOptions& options) {
  ReplicaState& state = state_of_this_replica();
  state.gradients.clear();
  for (const GradientAndVariable& pair : gradients) state.gradients.push_back(pair.gradient);
  StepPurpose purpose(gradients, elsewhere, replica.device());
  std::optional<double> examples = options.examples;
  if (options.aggregation != GradientAggregation::kNone) {
    if (examples) state.add_examples(*examples, replica.device());
    aggregate(replica, state.gradients, purpose, options.aggregation);
    if (examples) examples = state.take_examples();
  }
  const std::vector<IndexedSlices> rows = summed_rows(replica, elsewhere, purpose, options.aggregation);
  if (examples == 0.0) return state.gradients.clear();

  const StepArguments arguments = begin_step(examples);
  state.shared.clear();
  std::optional<OptimizerRecipe> as_sent;
  // The gradients are summed, so one of the replicas speaks for all of them.
  const auto apply_elsewhere = [&](const Variable& variable, const TensorOrSlices& gradient) {
    if (current_mode().local_replica > 0) return;
    if (!as_sent) as_sent = recipe(arguments.learning_rate);
    variable.state()->apply_elsewhere(*as_sent, multiplied(gradient, arguments.gradient_factor));
  };
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Variable& variable = gradients[i].variable;
    if (variable.state()->is_kept_elsewhere()) {
      apply_elsewhere(variable, state.gradients[i]);
    } else if (is_shared(variable)) {
      static_cast<void>(slots_of(state, variable));  // made while all replicas are here
      state.shared.push_back(i);
    } else {
      update_component(state, variable, state.gradients[i], arguments);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) apply_elsewhere(elsewhere[i].variable, rows[i]);
  if (!state.shared.empty()) update_shared(replica, purpose, state, gradients, arguments);
  state.gradients.clear();  // they are the caller's
}

void Optimizer::update_shared(const ReplicaContext& replica, const CallPurpose& purpose, ReplicaState& state,
                              const std::vector<GradientAndVariable>& gradients,
                              const StepArguments& arguments) const {
  replica.merge_call_for(purpose, [&](const Strategy& strategy) {
    for (const std::size_t i : state.shared) {
      strategy.extended().update(gradients[i].variable, [&](const Variable& variable) {
        update_component(state, variable, state.gradients[i], arguments);
      });
    }
  });
}

OptimizerRecipe Optimizer::recipe(double /*learning_rate*/) const {
  throw Unimplemented(
      "this optimizer is not known to parameter servers: derive it from RegisteredOptimizer, as "
      "cohort/train/optimizers/optimizer_registry.h says");
}

StepArguments Optimizer::begin_step(std::optional<double> examples) {
  std::int64_t& steps = state_of_this_replica().steps;
  const double rate = checked(rate_(steps));
  return {.step = ++steps, .learning_rate = rate, .gradient_factor = examples ? 1 / *examples : 1};
}

double Optimizer::learning_rate() const { return rate_(iterations()); }

void Optimizer::set_learning_rate(LearningRateSchedule rate) {
  if (const auto number = rate.constant()) static_cast<void>(checked(*number));
  rate_ = std::move(rate);
}

std::int64_t Optimizer::iterations() const {
  const std::lock_guard lock(mutex_);
  return (states_.empty() ? beginning_ : states_.begin()->second)->steps;
}

std::vector<Variable> Optimizer::slots(const Variable& variable) const {
  const std::lock_guard lock(mutex_);
  const auto& slots = (states_.empty() ? beginning_ : states_.begin()->second)->slots;
  const auto found = slots.find(variable.state());
  return found == slots.end() ? std::vector<Variable>() : found->second;
}

void Optimizer::make_slots(std::span<const Variable> variables) {
  for (const Variable& variable : variables) require_slots_here(variable);
  add_slots(variables);
}

void Optimizer::add_slots(std::span<const Variable> variables) {
  for (const Variable& variable : variables) {
    const std::vector<Variable> found = slots(variable);
    const std::vector<Variable> slots = found.empty() ? new_slots(variable) : found;
    const std::lock_guard lock(mutex_);
    beginning_->slots.try_emplace(variable.state(), slots);
    for (const auto& [replica, state] : states_) state->slots.try_emplace(variable.state(), slots);
  }
}

Tensor Optimizer::read_slot(const Variable& variable, std::size_t slot) const {
  if (variable.state()->is_kept_elsewhere())
    return variable.state()->read_slot_elsewhere(static_cast<std::uint8_t>(slot));
  return slots(variable).at(slot).components().front();
}

void Optimizer::assign_slot(const Variable& variable, std::size_t slot, const Tensor& value) {
  if (variable.state()->is_kept_elsewhere())
    return variable.state()->assign_slot_elsewhere(static_cast<std::uint8_t>(slot), value);
  slots(variable).at(slot).assign(value);
}

void Optimizer::set_iterations(std::int64_t iterations) {
  if (iterations < 0) throw InvalidArgument("an optimizer cannot have applied {} steps", iterations);
  const std::lock_guard lock(mutex_);
  beginning_->steps = iterations;
  for (const auto& [replica, state] : states_) state->steps = iterations;
}

}  // namespace cohort
