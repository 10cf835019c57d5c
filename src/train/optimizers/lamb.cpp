#include <cohort/train/optimizers/lamb.h>

#include <cmath>

#include "adam_step.h"
#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Lamb)
namespace {

/// The norm of the variable by that of the direction.
double trust_ratio(const LambStep& rule, const Tensor& variable, std::span<const Tensor> slots) {
  const Tensor value = variable.on_host();
  const Tensor first = slots[0].on_host();
  const Tensor second = slots[1].on_host();
  double of_variable = 0;
  double of_direction = 0;
  visit_dtype(value.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>) {
      const LambStep::Element<T> element(rule);
      const auto values = value.span<T>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto wide = static_cast<Wide<T>>(values[i]);
        const double along = element.direction(wide, first.span<T>()[i], second.span<T>()[i]);
        of_variable += static_cast<double>(wide) * static_cast<double>(wide);
        of_direction += along * along;
      }
    }
  });
  return of_variable > 0 && of_direction > 0 ? std::sqrt(of_variable / of_direction) : 1;
}

}  // namespace

Lamb::Lamb(LambOptions options) : RegisteredOptimizer(options, {"first_moment", "second_moment"}) {
  require_positive("Lamb", "learning_rate", options.learning_rate);
  require_decay("Lamb", "beta_1", options.beta_1);
  require_decay("Lamb", "beta_2", options.beta_2);
  require_positive("Lamb", "epsilon", options.epsilon);
  require_not_negative("Lamb", "weight_decay", options.weight_decay);
}

void Lamb::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  StepArguments first = arguments;
  first.has_average = false;
  const std::span<const Tensor> without_average = slots.first(slots.size() - (arguments.has_average ? 1 : 0));
  apply_step(MomentsStep{.beta_1 = options().beta_1, .beta_2 = options().beta_2}, first, variable,
             without_average, gradient);
  LambStep rule{.rate = 1,
                .first_bias = bias_of(options().beta_1, arguments),
                .second_bias = bias_of(options().beta_2, arguments),
                .epsilon = options().epsilon,
                .weight_decay = options().weight_decay};
  rule.rate = arguments.learning_rate * trust_ratio(rule, arguments.has_master ? slots[2] : variable, slots);
  StepArguments second = arguments;
  second.weight_decay = 0;
  apply_step(rule, second, variable, slots, gradient);
}

}  // namespace cohort
