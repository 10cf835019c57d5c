#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <cohort/collective/reduction.h>
#include <cohort/strategy/strategy.h>

#include "collective/kernels/reduce_tensors.h"
#include "device/rules/arithmetic.h"
#include "replica_state.h"
#include "require_option.h"

// What becomes of gradients between `apply_gradients` and the updates of variables.

namespace cohort {
namespace {

/// NaN for a norm that is not finite: no finite element may then make a step beyond the limit.
double factor_to(const std::optional<double>& limit, double norm) {
  if (!limit) return 1;
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  return norm > *limit ? *limit / norm : 1;
}

void scale_elements(const Tensor& tensor, double factor, double largest) {
  const Tensor there = tensor.on_host();
  visit_dtype(there.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>)
      for (T& element : there.span<T>())
        element = T(std::clamp(static_cast<Wide<T>>(element) * static_cast<Wide<T>>(factor),
                               -static_cast<Wide<T>>(largest), static_cast<Wide<T>>(largest)));
  });
  if (!is_cpu(tensor)) tensor.copy_from(there);
}

/// Without the lists that `reduce_into` makes.
void add_to(const Tensor& sum, const Tensor& other) {
  if (!is_cpu(sum)) return reduce_into(ReduceOp::kSum, std::array{sum, other}, sum);
  const Tensor there = other.on_host();
  const std::array<const std::byte*, 2> both{sum.data(), there.data()};
  reduce_elements(sum.dtype(), ReduceOp::kSum, both, sum.data(), sum.elements());
}

/// 16-bit gradients are added in float32, and rounded once: 256 + 1 is 256 in bfloat16, however often.
DType sum_dtype(DType dtype) { return is_half(dtype) ? DType::kFloat32 : dtype; }

}  // namespace

bool Optimizer::accumulate(ReplicaState& state, const std::vector<GradientAndVariable>& gradients,
                           const ApplyOptions& options) const {
  const bool is_first = state.calls == 0;
  const auto fits = [](const GradientAndVariable& a, const GradientAndVariable& b) {
    return a.variable == b.variable;
  };
  const bool is_new = !std::ranges::equal(state.accumulated, gradients, fits);
  if (is_new && !is_first)
    throw InvalidArgument(
        "apply_gradients: the calls that are accumulated must have the same variables in the same order");
  if (is_new) {
    state.accumulated.clear();
    state.sums.clear();
    for (const auto& [gradient, variable] : gradients) {
      state.accumulated.push_back({gradient.clone(), variable});
      const Tensor& own = state.accumulated.back().gradient;
      state.sums.push_back(own.cast(sum_dtype(own.dtype())));
    }
  } else {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Tensor& sum = state.sums[i];
      const Tensor wide = gradients[i].gradient.cast(sum.dtype());
      if (is_first)
        sum.copy_from(wide);
      else
        add_to(sum, wide);
    }
  }
  state.accumulated_examples += options.examples.value_or(0);
  state.calls = (state.calls + 1) % update_options_.accumulation_steps;
  if (state.calls != 0) return false;
  for (std::size_t i = 0; i < state.sums.size(); ++i) {
    const Tensor& own = state.accumulated[i].gradient;
    if (own.dtype() != state.sums[i].dtype()) own.copy_from(state.sums[i].cast(own.dtype()));
  }
  return true;
}

void Optimizer::clip_own(ReplicaState& state, const std::optional<double>& examples) const {
  const ClipOptions& clip = update_options_.clip;
  // The limits are those of what is applied, so they grow with what the sum is divided by.
  const double divisor = state.scale * (examples ? (*examples > 0 ? *examples : 1.0)
                                                 : static_cast<double>(update_options_.accumulation_steps));
  double all = 0;
  for (const GradientAndVariable& pair : state.accumulated)
    if (clip.global_norm) all = state.add_squares(all, pair.gradient);
  const double factor = factor_to(clip.global_norm, std::sqrt(all) / divisor);
  for (const GradientAndVariable& pair : state.accumulated) {
    const double own = clip.norm ? std::sqrt(state.add_squares(0, pair.gradient)) / divisor : 0;
    const double largest = clip.value ? *clip.value * divisor : std::numeric_limits<double>::infinity();
    scale_elements(pair.gradient, factor * factor_to(clip.norm, own), largest);
  }
}

bool Optimizer::needs_all_squares() const noexcept {
  const ClipOptions& clip = update_options_.clip;
  return update_options_.loss_scale.has_value() || (clip.global_norm && !clip.each_replica);
}

bool Optimizer::needs_own_squares() const noexcept {
  return update_options_.clip.norm && !update_options_.clip.each_replica;
}

std::optional<StepArguments> Optimizer::begin_checked_step(ReplicaState& state,
                                                           const std::optional<double>& examples,
                                                           double squares) {
  if (update_options_.loss_scale && !std::isfinite(squares)) {
    state.scale = std::max(state.scale / 2, std::min(state.scale, 1.0));
    state.steady_steps = 0;
    return std::nullopt;
  }
  StepArguments arguments = begin_step(examples);
  const ClipOptions& clip = update_options_.clip;
  if (clip.global_norm && !clip.each_replica)
    arguments.gradient_factor *= factor_to(clip.global_norm, arguments.gradient_factor * std::sqrt(squares));
  if (update_options_.loss_scale && ++state.steady_steps == update_options_.loss_scale->steps_to_double) {
    if (std::isfinite(state.scale * 2)) state.scale *= 2;
    state.steady_steps = 0;
  }
  return arguments;
}

StepArguments Optimizer::begin_step(std::optional<double> examples) {
  ReplicaState& state = state_of_this_replica();
  StepArguments arguments = arguments_of(state.steps + 1, checked_rate(rate_(state.steps)));
  ++state.steps;
  const auto calls = static_cast<double>(update_options_.accumulation_steps);
  arguments.gradient_factor = 1 / (examples.value_or(calls) * state.scale);
  return arguments;
}

StepArguments Optimizer::arguments_of(std::int64_t step, double learning_rate) const {
  StepArguments arguments{.step = step, .learning_rate = learning_rate};
  const ClipOptions& clip = update_options_.clip;
  if (clip.value && !clip.each_replica) arguments.largest_gradient = *clip.value;
  arguments.weight_decay = learning_rate * update_options_.weight_decay;
  if (const auto& average = update_options_.average) {
    arguments.has_average = true;
    arguments.average_kept = step == 1 ? 0 : average->momentum;
    arguments.takes_average = average->overwrite_every > 0 && step % average->overwrite_every == 0;
  }
  return arguments;
}

StepArguments Optimizer::clipped(double squares, StepArguments arguments) const {
  const double norm = arguments.gradient_factor * std::sqrt(squares);
  arguments.gradient_factor *= factor_to(update_options_.clip.norm, norm);
  return arguments;
}

StepArguments Optimizer::arguments_for(ReplicaState& state, const Tensor& gradient,
                                       const StepArguments& arguments) const {
  return needs_own_squares() ? clipped(state.add_squares(0, gradient), arguments) : arguments;
}

}  // namespace cohort
