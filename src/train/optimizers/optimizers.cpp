// The optimizers, each of which checks its options and makes its step by a rule of
// device/rules/optimizer_step.h; and the registry from which another task makes one by its name.
#include <cmath>
#include <map>

#include <cohort/base/error.h>
#include <cohort/train/optimizers/adadelta.h>
#include <cohort/train/optimizers/adagrad.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/adam_w.h>
#include <cohort/train/optimizers/adamax.h>
#include <cohort/train/optimizers/ftrl.h>
#include <cohort/train/optimizers/lamb.h>
#include <cohort/train/optimizers/lion.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/nadam.h>
#include <cohort/train/optimizers/optimizer_registry.h>
#include <cohort/train/optimizers/rms_prop.h>
#include <cohort/train/optimizers/sgd.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Sgd)

Sgd::Sgd(SgdOptions options) : RegisteredOptimizer(options) {
  require_positive("Sgd", "learning_rate", options.learning_rate);
}

void Sgd::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                 const StepArguments& arguments) const {
  apply_step(SgdStep<double>{.rate = arguments.learning_rate}, arguments, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(Momentum)

Momentum::Momentum(MomentumOptions options) : RegisteredOptimizer(options, {"velocity"}) {
  require_positive("Momentum", "learning_rate", options.learning_rate);
  require_decay("Momentum", "momentum", options.momentum);
}

void Momentum::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                      const StepArguments& arguments) const {
  apply_step(MomentumStep<double>{.rate = arguments.learning_rate,
                                  .momentum = options().momentum,
                                  .nesterov = options().nesterov ? 1.0 : 0.0},
             arguments, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(Adagrad)

Adagrad::Adagrad(AdagradOptions options)
    : RegisteredOptimizer(options, {"squares"}, {options.initial_accumulator}) {
  require_positive("Adagrad", "learning_rate", options.learning_rate);
  require_not_negative("Adagrad", "initial_accumulator", options.initial_accumulator);
  require_not_negative("Adagrad", "epsilon", options.epsilon);
}

void Adagrad::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                     const StepArguments& arguments) const {
  apply_step(AdagradStep<double>{.rate = arguments.learning_rate, .epsilon = options().epsilon}, arguments,
             variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(Adadelta)

Adadelta::Adadelta(AdadeltaOptions options) : RegisteredOptimizer(options, {"squares", "changes"}) {
  require_positive("Adadelta", "learning_rate", options.learning_rate);
  require_decay("Adadelta", "rho", options.rho);
  require_positive("Adadelta", "epsilon", options.epsilon);
}

void Adadelta::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                      const StepArguments& arguments) const {
  apply_step(
      AdadeltaStep<double>{
          .rate = arguments.learning_rate, .rho = {options().rho}, .epsilon = options().epsilon},
      arguments, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(RmsProp)
namespace {

std::vector<std::string> slot_names_of(const RmsPropOptions& options) {
  std::vector<std::string> names{"mean_square"};
  if (options.centered) names.emplace_back("mean");
  if (options.momentum > 0) names.emplace_back("velocity");
  return names;
}

template <bool kCentered>
OptimizerRule rule_of(const RmsPropOptions& options, double rate) {
  if (options.momentum > 0)
    return RmsPropStep<double, kCentered, true>{rate, {options.rho}, options.epsilon, options.momentum};
  return RmsPropStep<double, kCentered, false>{rate, {options.rho}, options.epsilon};
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
  const auto rule = options().centered ? rule_of<true> : rule_of<false>;
  apply_step(rule(options(), arguments.learning_rate), arguments, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(Ftrl)

Ftrl::Ftrl(FtrlOptions options)
    : RegisteredOptimizer(options, {"squares", "linear"}, {options.initial_accumulator}) {
  require_positive("Ftrl", "learning_rate", options.learning_rate);
  require_not_negative("Ftrl", "initial_accumulator", options.initial_accumulator);
  require_not_negative("Ftrl", "l1", options.l1);
  require_not_negative("Ftrl", "l2", options.l2);
  require_not_negative("Ftrl", "l2_shrinkage", options.l2_shrinkage);
  require_not_negative("Ftrl", "beta", options.beta);
}

void Ftrl::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  apply_step(FtrlStep<double>{.rate = arguments.learning_rate,
                              .l1 = options().l1,
                              .l2 = options().l2 + options().beta / (2 * arguments.learning_rate),
                              .shrinkage = options().l2_shrinkage},
             arguments, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(Lion)

Lion::Lion(LionOptions options) : RegisteredOptimizer(options, {"moment"}) {
  require_positive("Lion", "learning_rate", options.learning_rate);
  require_decay("Lion", "beta_1", options.beta_1);
  require_decay("Lion", "beta_2", options.beta_2);
}

void Lion::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  apply_step(
      LionStep<double>{
          .rate = arguments.learning_rate, .beta_1 = {options().beta_1}, .beta_2 = {options().beta_2}},
      arguments, variable, slots, gradient);
}

namespace {

// What is common to the optimizers that keep moments.

template <class Options>
void require_of_moments(std::string_view of, const Options& options) {
  require_positive(of, "learning_rate", options.learning_rate);
  require_decay(of, "beta_1", options.beta_1);
  require_decay(of, "beta_2", options.beta_2);
  require_positive(of, "epsilon", options.epsilon);
}

/// The moments begin at zero, and so are too small at first.
double bias_of(double decay, const StepArguments& arguments) {
  return 1 - std::pow(decay, static_cast<double>(arguments.step));
}

/// `options` are those of Adam or AdamW.
template <bool kAmsGrad, class Options>
AdamStep<double, kAmsGrad> adam_step(const Options& options, const StepArguments& arguments) {
  const double correction =
      std::sqrt(bias_of(options.beta_2, arguments)) / bias_of(options.beta_1, arguments);
  return {.rate = arguments.learning_rate * correction,
          .beta_1 = {options.beta_1},
          .beta_2 = {options.beta_2},
          .epsilon = options.epsilon};
}

std::vector<std::string> slot_names_of(const AdamOptions& options) {
  if (options.amsgrad) return {"first_moment", "second_moment", "largest_second_moment"};
  return {"first_moment", "second_moment"};
}

}  // namespace

COHORT_REGISTER_OPTIMIZER(Adam)

Adam::Adam(AdamOptions options) : RegisteredOptimizer(options, slot_names_of(options)) {
  require_of_moments("Adam", options);
}

void Adam::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  if (options().amsgrad)
    apply_step(adam_step<true>(options(), arguments), arguments, variable, slots, gradient);
  else
    apply_step(adam_step<false>(options(), arguments), arguments, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(AdamW)

AdamW::AdamW(AdamWOptions options) : RegisteredOptimizer(options, {"first_moment", "second_moment"}) {
  require_of_moments("AdamW", options);
  require_not_negative("AdamW", "weight_decay", options.weight_decay);
}

void AdamW::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                   const StepArguments& arguments) const {
  StepArguments decaying = arguments;
  decaying.weight_decay += arguments.learning_rate * options().weight_decay;
  apply_step(adam_step<false>(options(), arguments), decaying, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(Adamax)

Adamax::Adamax(AdamaxOptions options) : RegisteredOptimizer(options, {"first_moment", "largest_gradient"}) {
  require_of_moments("Adamax", options);
}

void Adamax::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                    const StepArguments& arguments) const {
  apply_step(AdamaxStep<double>{.rate = arguments.learning_rate / bias_of(options().beta_1, arguments),
                                .beta_1 = {options().beta_1},
                                .beta_2 = options().beta_2,
                                .epsilon = options().epsilon},
             arguments, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(Nadam)
namespace {

double momentum_at(double beta, std::int64_t step) {
  return beta * (1 - std::pow(0.96, static_cast<double>(step)) / 2);
}

/// Of all steps so far. Below the smallest double that changes 1, further factors do not matter.
double product_of_momenta(double beta, std::int64_t steps) {
  double product = 1;
  double power = 1;
  for (std::int64_t step = 1; step <= steps && product > 1e-17; ++step) {
    power *= 0.96;
    product *= beta * (1 - power / 2);
  }
  return product;
}

}  // namespace

Nadam::Nadam(NadamOptions options) : RegisteredOptimizer(options, {"first_moment", "second_moment"}) {
  require_of_moments("Nadam", options);
}

void Nadam::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                   const StepArguments& arguments) const {
  const double beta = options().beta_1;
  const double all = product_of_momenta(beta, arguments.step);
  const double next = momentum_at(beta, arguments.step + 1);
  const double rate = arguments.learning_rate;
  apply_step(NadamStep<double>{.moment_rate = rate * next / (1 - all * next),
                               .gradient_rate = rate * (1 - momentum_at(beta, arguments.step)) / (1 - all),
                               .beta_1 = {beta},
                               .beta_2 = {options().beta_2},
                               .second_bias = bias_of(options().beta_2, arguments),
                               .epsilon = options().epsilon},
             arguments, variable, slots, gradient);
}

COHORT_REGISTER_OPTIMIZER(Lamb)
namespace {

/// The norm of the variable by that of the direction.
double trust_ratio(const LambStep<double>& rule, const Tensor& variable, std::span<const Tensor> slots) {
  const Tensor value = variable.on_host();
  const Tensor first = slots[0].on_host();
  const Tensor second = slots[1].on_host();
  double of_variable = 0;
  double of_direction = 0;
  visit_dtype(value.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>) {
      const auto element = converted<Wide<T>>(rule);
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
  require_of_moments("Lamb", options);
  require_not_negative("Lamb", "weight_decay", options.weight_decay);
}

void Lamb::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  StepArguments first = arguments;
  first.has_average = false;
  const std::span<const Tensor> without_average = slots.first(slots.size() - (arguments.has_average ? 1 : 0));
  apply_step(MomentsStep<double>{.beta_1 = {options().beta_1}, .beta_2 = {options().beta_2}}, first, variable,
             without_average, gradient);
  LambStep<double> rule{.rate = 1,
                        .first_bias = bias_of(options().beta_1, arguments),
                        .second_bias = bias_of(options().beta_2, arguments),
                        .epsilon = options().epsilon,
                        .weight_decay = options().weight_decay};
  rule.rate = arguments.learning_rate * trust_ratio(rule, arguments.has_master ? slots[2] : variable, slots);
  StepArguments second = arguments;
  second.weight_decay = 0;
  apply_step(rule, second, variable, slots, gradient);
}

namespace {

/// Filled before `main`, and only read after that.
std::map<std::string, OptimizerMaker, std::less<>>& makers() {
  static std::map<std::string, OptimizerMaker, std::less<>> by_type;
  return by_type;
}

}  // namespace

bool register_optimizer(std::string_view type, OptimizerMaker make) {
  const auto [place, added] = makers().emplace(type, make);
  if (!added && place->second != make)
    throw InvalidArgument("two classes of optimizers are registered as '{}'", type);
  return added;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerRecipe& recipe) {
  const auto found = makers().find(recipe.type);
  if (found != makers().end()) return found->second(recipe.options);
  throw InvalidArgument(
      "no optimizer is registered as '{}' in this program: all tasks must run the same one, with "
      "COHORT_REGISTER_OPTIMIZER in one of its source files",
      recipe.type);
}

void detail::throw_wrong_options(std::string_view type, std::size_t bytes, std::size_t expected) {
  throw InvalidArgument(
      "the options of optimizer '{}' came in {} bytes, but have {} here: all tasks must run "
      "the same program",
      type, bytes, expected);
}

}  // namespace cohort
