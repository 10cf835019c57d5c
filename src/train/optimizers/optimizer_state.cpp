#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <cohort/strategy/strategy.h>

#include "replica_state.h"
#include "require_option.h"

// What an optimizer is beside its steps: its rate, its options and its slots.

namespace cohort {
namespace {

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

void require(bool holds, std::string_view option, double value, std::string_view what) {
  if (!holds) throw InvalidArgument("set_update_options: {} is {}; it must be {}", option, value, what);
}

void require_limit(std::string_view option, const std::optional<double>& limit) {
  require(!limit || *limit > 0, option, limit.value_or(1), "positive");
}

void require_valid(const UpdateOptions& options) {
  const ClipOptions& clip = options.clip;
  require(std::isfinite(options.weight_decay) && options.weight_decay >= 0, "weight_decay",
          options.weight_decay, "a finite number, and not negative");
  require_limit("clip.value", clip.value);
  require_limit("clip.norm", clip.norm);
  require_limit("clip.global_norm", clip.global_norm);
  if (clip.value.has_value() + clip.norm.has_value() + clip.global_norm.has_value() > 1)
    throw InvalidArgument(
        "set_update_options: clip has several limits; give one of value, norm, global_norm");
  require(options.accumulation_steps >= 1, "accumulation_steps",
          static_cast<double>(options.accumulation_steps), "at least 1");
  if (options.loss_scale) {
    const double first = options.loss_scale->first;
    require(std::isfinite(first) && first > 0, "loss_scale.first", first, "a positive number");
    require(options.loss_scale->steps_to_double >= 1, "loss_scale.steps_to_double",
            static_cast<double>(options.loss_scale->steps_to_double), "at least 1");
  }
  if (!options.average) return;
  const double momentum = options.average->momentum;
  require(momentum >= 0 && momentum <= 1, "average.momentum", momentum, "from 0 to 1");
  require(options.average->overwrite_every >= 0, "average.overwrite_every",
          static_cast<double>(options.average->overwrite_every), "at least 0");
}

}  // namespace

Optimizer::Optimizer(double learning_rate, std::vector<std::string> slot_names,
                     std::vector<double> beginnings)
    : rate_(learning_rate),
      slot_names_(std::move(slot_names)),
      slot_beginnings_(std::move(beginnings)),
      beginning_(std::make_unique<ReplicaState>()) {
  slot_beginnings_.resize(slot_names_.size());
}

Optimizer::~Optimizer() = default;

Optimizer::ReplicaState& Optimizer::state_of_this_replica() {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ReplicaState>& state = states_[current_mode().local_replica];
  if (state == nullptr) state = std::make_unique<ReplicaState>(*beginning_);
  return *state;
}

/// The optimizer's own, then the master and the average.
std::vector<Variable> Optimizer::new_slots(const Variable& variable) const {
  std::vector<Variable> slots;
  const DType dtype = slot_dtype(variable.dtype());
  for (const std::string& name : all_slot_names(variable.dtype())) {
    VariableOptions options{.shape = variable.shape(),
                            .dtype = dtype,
                            .name = fmt::format("{}/{}", variable.name(), name),
                            .name_may_differ = variable.state()->options().name_may_differ,
                            .trainable = false,
                            .colocate_with = &variable};
    const std::size_t number = slots.size();
    if (number < slot_names_.size() && slot_beginnings_[number] != 0)
      options.initial_value = Tensor::full(variable.shape(), dtype, slot_beginnings_[number]);
    if (number == slot_names_.size() && dtype != variable.dtype())
      options.initial_value = variable.read().on_host().cast(dtype);
    slots.emplace_back(options);
  }
  return slots;
}

const std::vector<Variable>& Optimizer::slots_of(ReplicaState& state, const Variable& variable) const {
  const auto found = state.slots.find(variable.state());
  if (found != state.slots.end()) return found->second;
  return state.slots.emplace(variable.state(), new_slots(variable)).first->second;
}

void Optimizer::set_update_options(const UpdateOptions& options) {
  require_valid(options);
  const std::lock_guard lock(mutex_);
  if (!states_.empty() || !beginning_->slots.empty())
    throw InvalidArgument(
        "set_update_options: the optimizer has made steps or slots; set options before these");
  update_options_ = options;
  beginning_->scale = options.loss_scale ? options.loss_scale->first : 1;
}

double Optimizer::loss_scale() const {
  const std::lock_guard lock(mutex_);
  const auto own = states_.find(current_mode().local_replica);
  return own != states_.end() ? own->second->scale : any_state().scale;
}

std::pair<double, std::int64_t> Optimizer::loss_scale_state() const {
  const std::lock_guard lock(mutex_);
  return {any_state().scale, any_state().steady_steps};
}

void Optimizer::set_loss_scale_state(double scale, std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  const auto set = [&](ReplicaState& state) {
    state.scale = scale;
    state.steady_steps = steps;
  };
  set(*beginning_);
  for (const auto& [replica, state] : states_) set(*state);
}

const Optimizer::ReplicaState& Optimizer::any_state() const {
  return *(states_.empty() ? beginning_ : states_.begin()->second);
}

std::vector<std::string> Optimizer::all_slot_names(DType dtype) const {
  std::vector<std::string> names = slot_names_;
  if (slot_dtype(dtype) != dtype) names.emplace_back("master");
  if (update_options_.average) names.emplace_back("average");
  return names;
}

DType Optimizer::slot_dtype(DType dtype) const noexcept {
  return is_half(dtype) && update_options_.float32_masters ? DType::kFloat32 : dtype;
}

void Optimizer::swap_averages(std::span<const Variable> variables) {
  if (current_mode().kind == ContextKind::kReplica)
    throw WrongContext("swap_averages was called inside run(); call it in cross-replica context");
  for (const Variable& variable : variables) {
    if (!update_options_.average || !has_slots(variable))
      throw InvalidArgument(
          "swap_averages: variable '{}' has no average; set the option `average` before the first step",
          variable.name());
  }
  for (const Variable& variable : variables) swap_average(variable);
}

bool Optimizer::has_slots(const Variable& variable) const { return !slots(variable).empty(); }

void Optimizer::swap_average(const Variable& variable) {
  const std::vector<Variable> all = slots(variable);
  const bool has_master = slot_dtype(variable.dtype()) != variable.dtype();
  const Variable& value = has_master ? all[slot_names_.size()] : variable;
  for (std::size_t i = 0; i < value.components().size(); ++i) {
    const Tensor before = value.components()[i].clone();
    value.components()[i].copy_from(all.back().components()[i]);
    all.back().components()[i].copy_from(before);
    if (has_master) variable.components()[i].copy_from(value.components()[i].cast(variable.dtype()));
  }
}

double Optimizer::learning_rate() const { return rate_(iterations()); }

void Optimizer::set_learning_rate(LearningRateSchedule rate) {
  const std::optional<double> number = rate.constant();
  if (number) static_cast<void>(checked_rate(*number));
  rate_by_hand_ = number;
  rate_ = std::move(rate);
}

std::int64_t Optimizer::iterations() const {
  const std::lock_guard lock(mutex_);
  return any_state().steps;
}

std::int64_t Optimizer::accumulated_calls() const {
  const std::lock_guard lock(mutex_);
  return any_state().calls;
}

std::vector<Variable> Optimizer::slots(const Variable& variable) const {
  const std::lock_guard lock(mutex_);
  const auto& slots = any_state().slots;
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
  for (const auto& [replica, state] : states_) {
    state->steps = iterations;
    state->calls = 0;
    state->accumulated_examples = 0;
  }
}

}  // namespace cohort
