#include <cohort/train/optimizers/rms_prop.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(RmsProp)
namespace {

std::vector<std::string> slot_names_of(const RmsPropOptions& options) {
  std::vector<std::string> names{"mean_square"};
  if (options.centered) names.emplace_back("mean");
  if (options.momentum > 0) names.emplace_back("velocity");
  return names;
}

OptimizerRule rule_of(const RmsPropOptions& options, double rate) {
  const auto plain = [&]<class Rule>(Rule rule) {
    rule.rate = rate;
    rule.rho = options.rho;
    rule.epsilon = options.epsilon;
    return rule;
  };
  const auto with_momentum = [&]<class Rule>(Rule rule) {
    rule.momentum = options.momentum;
    return plain(rule);
  };
  if (options.centered && options.momentum > 0) return with_momentum(CenteredRmsPropMomentumStep{});
  if (options.momentum > 0) return with_momentum(RmsPropMomentumStep{});
  if (options.centered) return plain(CenteredRmsPropStep{});
  return plain(RmsPropStep{});
}

}  // namespace

RmsProp::RmsProp(RmsPropOptions options)
    : RegisteredOptimizer(options, slot_names_of(options), {options.initial_square}) {
  require_positive("RmsProp", "learning_rate", options.learning_rate);
  require_decay("RmsProp", "rho", options.rho);
  require_decay("RmsProp", "momentum", options.momentum);
  require_positive("RmsProp", "epsilon", options.epsilon);
  require_not_negative("RmsProp", "initial_square", options.initial_square);
}

void RmsProp::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                     const StepArguments& arguments) const {
  apply_step(rule_of(options(), arguments.learning_rate), arguments, variable, slots, gradient);
}

}  // namespace cohort
