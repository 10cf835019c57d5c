#include <cohort/train/optimizers/optimizer.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/strategy/strategy.h>

#include "device/rules/arithmetic.h"
#include "replica_state.h"

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
bool is_shared_by_replicas(const Variable& variable) {
  const VariableOwner* owner = variable.state()->owner();
  return owner != nullptr && owner->local_replicas() > 1 && variable.components().size() == 1;
}

const ReplicaContext& require_replica() {
  if (const ReplicaContext* replica = get_replica_context()) return *replica;
  throw WrongContext(
      "apply_gradients was called in cross-replica context; call it inside the function given to run()");
}

void require_examples(const ApplyOptions& options) {
  if (!options.examples || (std::isfinite(*options.examples) && *options.examples >= 0)) return;
  throw InvalidArgument("apply_gradients: a replica cannot have the gradients of {} examples",
                        *options.examples);
}

/// A new tensor, for a gradient that travels.
TensorOrSlices scaled(const TensorOrSlices& gradient, const StepArguments& arguments) {
  if (arguments.gradient_factor == 1 && std::isinf(arguments.largest_gradient)) return gradient;
  const Tensor product = values_of(gradient).on_host().clone();
  visit_dtype(product.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>) {
      const auto factor = static_cast<Wide<T>>(arguments.gradient_factor);
      const auto largest = static_cast<Wide<T>>(arguments.largest_gradient);
      for (T& element : product.span<T>())
        element = T(std::clamp(static_cast<Wide<T>>(element) * factor, -largest, largest));
    }
  });
  const auto* slices = std::get_if<IndexedSlices>(&gradient);
  if (slices == nullptr) return product;
  return IndexedSlices{product, slices->indices, slices->dense_shape};
}

/// A server makes the step, and knows no more than the optimizer's rule and its weight decay.
void require_travels(const Variable& variable, const UpdateOptions& options) {
  if (!variable.state()->is_kept_elsewhere() || (!options.average && !options.float32_masters)) return;
  throw Unimplemented(
      "apply_gradients: variable '{}' is on a parameter server, which keeps no averages and no float32 "
      "masters; "
      "leave these options out, or make the variable without a server",
      variable.name());
}

/// Rows that are named twice are added by the server, so that nobody here knows the norm of their sum.
void require_rows_travel(const std::vector<SparseGradientAndVariable>& rows, const UpdateOptions& options) {
  const bool is_whole = !options.clip.norm && !options.clip.global_norm && !options.clip.each_replica &&
                        options.accumulation_steps == 1 && !options.loss_scale;
  if (rows.empty() || is_whole) return;
  throw Unimplemented(
      "apply_gradients: the sparse gradient of variable '{}' goes to a parameter server by rows; it cannot "
      "be "
      "clipped by its norm, accumulated or checked for overflow; clip by value, or give a dense gradient",
      rows.front().variable.name());
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

void Optimizer::update_component(ReplicaState& state, const Variable& variable, const Tensor& gradient,
                                 const StepArguments& arguments) const {
  state.slot_components.clear();
  for (const Variable& slot : slots_of(state, variable))
    state.slot_components.push_back(slot.replica_component());
  StepArguments own = arguments_for(state, gradient, arguments);
  own.has_master = slot_dtype(variable.dtype()) != variable.dtype();
  update(variable.replica_component(), state.slot_components, gradient, own);
}

void Optimizer::require_named_once(const std::vector<GradientAndVariable>& gradients,
                                   const std::vector<SparseGradientAndVariable>& sparse) {
  ReplicaState& state = state_of_this_replica();
  state.named.clear();
  for (const GradientAndVariable& pair : gradients) state.named.push_back(pair.variable.state().get());
  for (const SparseGradientAndVariable& pair : sparse) state.named.push_back(pair.variable.state().get());
  const VariableState* const twice = state.find_named_twice();
  if (twice == nullptr) return;
  throw InvalidArgument("apply_gradients: variable '{}' has two gradients; give it one, their sum",
                        twice->options().name);
}

void Optimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients,
                                const ApplyOptions& options) {
  const ReplicaContext& replica = require_replica();
  or_abort_replicas(replica, options.aggregation, [&] {
    require_examples(options);
    for (const GradientAndVariable& pair : gradients) {
      require_fitting(pair.gradient, pair.variable);
      require_travels(pair.variable, update_options_);
    }
    require_named_once(gradients, {});
  });
  apply(replica, gradients, {}, options);
}

void Optimizer::apply_sparse_gradients(const std::vector<SparseGradientAndVariable>& sparse,
                                       const std::vector<GradientAndVariable>& gradients,
                                       const ApplyOptions& options) {
  const ReplicaContext& replica = require_replica();
  std::vector<GradientAndVariable> dense = gradients;
  std::vector<SparseGradientAndVariable> elsewhere;
  or_abort_replicas(replica, options.aggregation, [&] {
    require_examples(options);
    for (const GradientAndVariable& pair : gradients) {
      require_fitting(pair.gradient, pair.variable);
      require_travels(pair.variable, update_options_);
    }
    for (const SparseGradientAndVariable& pair : sparse) {
      require_fitting(pair.gradient, pair.variable);
      require_travels(pair.variable, update_options_);
      if (pair.variable.state()->is_kept_elsewhere())
        elsewhere.push_back(pair);
      else
        dense.push_back({densify(pair.gradient), pair.variable});
    }
    require_rows_travel(elsewhere, update_options_);
    require_named_once(gradients, sparse);
  });
  apply(replica, dense, elsewhere, options);
}

void Optimizer::apply(const ReplicaContext& replica, const std::vector<GradientAndVariable>& gradients,
                      const std::vector<SparseGradientAndVariable>& elsewhere, const ApplyOptions& options) {
  const bool clips_own = update_options_.clip.each_replica;
  if (update_options_.accumulation_steps == 1 && !clips_own)
    return step(replica, gradients, elsewhere, options);
  ReplicaState& state = state_of_this_replica();
  ApplyOptions now = options;
  const bool is_time = replica.or_abort_replicas([&] { return accumulate(state, gradients, options); });
  if (!is_time) return;
  if (options.examples) now.examples = std::exchange(state.accumulated_examples, 0);
  if (clips_own) clip_own(state, now.examples);
  if (now.aggregation == GradientAggregation::kSum) now.aggregation = GradientAggregation::kSumInPlace;
  step(replica, state.accumulated, elsewhere, now);
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
  double squares = 0;
  if (needs_all_squares())
    for (const Tensor& gradient : state.gradients) squares = state.add_squares(squares, gradient);
  const std::optional<StepArguments> arguments = begin_checked_step(state, examples, squares);
  if (!arguments) return state.gradients.clear();

  state.shared.clear();
  std::optional<OptimizerRecipe> as_sent;
  // The gradients are summed, so one of the replicas speaks for all of them.
  const auto apply_elsewhere = [&](const Variable& variable, const TensorOrSlices& gradient) {
    if (current_mode().local_replica > 0) return;
    if (!as_sent) as_sent = recipe(arguments->learning_rate);
    variable.state()->apply_elsewhere(
        *as_sent, scaled(gradient, arguments_for(state, values_of(gradient), *arguments)));
  };
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Variable& variable = gradients[i].variable;
    if (variable.state()->is_kept_elsewhere()) {
      apply_elsewhere(variable, state.gradients[i]);
    } else if (is_shared_by_replicas(variable)) {
      static_cast<void>(slots_of(state, variable));  // made while all replicas are here
      state.shared.push_back(i);
    } else {
      update_component(state, variable, state.gradients[i], *arguments);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) apply_elsewhere(elsewhere[i].variable, rows[i]);
  if (!state.shared.empty()) update_shared(replica, purpose, state, gradients, *arguments);
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

}  // namespace cohort
