// Recorded lines of optimizers.
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
#include <cohort/train/optimizers/rms_prop.h>
#include <cohort/train/optimizers/sgd.h>

#include "../scenarios/checkpoints.h"
#include "families.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kRowsAreMerged = "rows of a sparse gradient are merged";
constexpr std::string_view kInReplicas = "conditional steps work in replicas";
constexpr std::string_view kLimits = "limits and counts of steps are checked";
constexpr std::string_view kOneCall = "one call is no accumulation";
constexpr std::string_view kDtypes = "a gradient has the dtype of its variable";

/// A number of the line, or its default.
class Arguments {
 public:
  explicit Arguments(const Json& arguments) : arguments_(arguments) {}

  double operator()(const char* name, double fallback) const { return arguments_.value(name, fallback); }
  [[nodiscard]] bool flag(const char* name) const { return arguments_.value(name, false); }
  [[nodiscard]] double rate(double fallback = 0.001) const { return (*this)("learning_rate", fallback); }

 private:
  const Json& arguments_;
};

template <class Options>
Options moments_of(const Arguments& arguments) {
  Options options;
  options.learning_rate = arguments.rate();
  options.beta_1 = arguments("beta_1", options.beta_1);
  options.beta_2 = arguments("beta_2", options.beta_2);
  if constexpr (requires { options.epsilon; }) options.epsilon = arguments("epsilon", options.epsilon);
  return options;
}

std::unique_ptr<Optimizer> adaptive(const std::string& name, const Arguments& arguments) {
  if (name == "Adagrad")
    return std::make_unique<Adagrad>(
        AdagradOptions{.learning_rate = arguments.rate(),
                       .initial_accumulator = arguments("initial_accumulator_value", 0.1),
                       .epsilon = arguments("epsilon", 1e-7)});
  if (name == "Adadelta")
    return std::make_unique<Adadelta>(AdadeltaOptions{.learning_rate = arguments.rate(),
                                                      .rho = arguments("rho", 0.95),
                                                      .epsilon = arguments("epsilon", 1e-7)});
  if (name == "RMSprop")
    return std::make_unique<RmsProp>(RmsPropOptions{.learning_rate = arguments.rate(),
                                                    .rho = arguments("rho", 0.9),
                                                    .momentum = arguments("momentum", 0),
                                                    .centered = arguments.flag("centered")});
  return std::make_unique<Ftrl>(FtrlOptions{.learning_rate = arguments.rate(),
                                            .l1 = arguments("l1_regularization_strength", 0),
                                            .l2 = arguments("l2_regularization_strength", 0)});
}

/// Weight decay is an option of all of them, and 0.004 where AdamW is not told another.
std::unique_ptr<Optimizer> optimizer_of(const std::string& name, const Arguments& arguments) {
  if (name == "SGD" && arguments("momentum", 0) == 0)
    return std::make_unique<Sgd>(SgdOptions{.learning_rate = arguments.rate(0.01)});
  if (name == "SGD")
    return std::make_unique<Momentum>(MomentumOptions{.learning_rate = arguments.rate(0.01),
                                                      .momentum = arguments("momentum", 0),
                                                      .nesterov = arguments.flag("nesterov")});
  if (name == "Adam") {
    auto options = moments_of<AdamOptions>(arguments);
    options.amsgrad = arguments.flag("amsgrad");
    return std::make_unique<Adam>(options);
  }
  if (name == "AdamW") {
    auto options = moments_of<AdamWOptions>(arguments);
    options.weight_decay = arguments("weight_decay", 0.004);
    return std::make_unique<AdamW>(options);
  }
  if (name == "Adamax") return std::make_unique<Adamax>(moments_of<AdamaxOptions>(arguments));
  if (name == "Nadam") return std::make_unique<Nadam>(moments_of<NadamOptions>(arguments));
  if (name == "Lion") return std::make_unique<Lion>(moments_of<LionOptions>(arguments));
  if (name == "Lamb") return std::make_unique<Lamb>(moments_of<LambOptions>(arguments));
  return adaptive(name, arguments);
}

std::optional<double> limit_of(const Json& arguments, const char* name) {
  return arguments.contains(name) ? std::optional<double>(arguments.at(name)) : std::nullopt;
}

UpdateOptions update_options_of(const std::string& name, const Json& arguments) {
  UpdateOptions options;
  if (name != "AdamW") options.weight_decay = arguments.value("weight_decay", 0.0);
  options.clip = {.value = limit_of(arguments, "clipvalue"),
                  .norm = limit_of(arguments, "clipnorm"),
                  .global_norm = limit_of(arguments, "global_clipnorm")};
  options.clip.each_replica = options.clip.value || options.clip.norm || options.clip.global_norm;
  options.accumulation_steps = arguments.value("gradient_accumulation_steps", 1);
  if (arguments.value("use_ema", false))
    options.average = AverageOptions{.momentum = arguments.value("ema_momentum", 0.99),
                                     .overwrite_every = arguments.value("ema_overwrite_frequency", 0)};
  return options;
}

std::unique_ptr<Optimizer> configured(const Json& input) {
  const std::string name = input.at("optimizer");
  auto optimizer = optimizer_of(name, Arguments(input.at("args")));
  optimizer->set_update_options(update_options_of(name, input.at("args")));
  return optimizer;
}

Tensor numbers(const Json& list) {
  std::vector<double> all;
  for (const Json& number : list)
    all.push_back(number == "inf"   ? std::numeric_limits<double>::infinity()
                  : number == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                    : number.get<double>());
  return Tensor::from(all).cast(DType::kFloat32);
}

void multiply(const Tensor& tensor, double factor) {
  for (float& element : tensor.span<float>()) element *= static_cast<float>(factor);
}

/// Slots by what Keras calls them.
Json slots_of(const Optimizer& optimizer, const Variable& variable, const Json& recorded) {
  static const std::vector<std::pair<std::string_view, std::string_view>> kNames{
      {"w_momentum", "first_moment"}, {"w_velocity", "second_moment"}, {"w_m", "first_moment"}};
  Json slots = Json::object();
  for (const auto& [key, value] : recorded.items()) slots[key] = value;
  for (const auto& [theirs, ours] : kNames) {
    const auto& names = optimizer.slot_names();
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == ours && recorded.contains(theirs))
        slots[std::string(theirs)] = show(optimizer.read_slot(variable, i));
  }
  if (optimizer.update_options().average && recorded.contains("w_average"))
    slots["w_average"] = show(optimizer.slots(variable).back().read());
  return slots;
}

Json steps(const Record& record) {
  const Json& input = record.arguments;
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const Variable variable({.name = "w", .initial_value = numbers(input.at("w0"))});
  const auto optimizer = configured(input);
  if (input.at("args").contains("loss_scale_factor"))
    optimizer->set_update_options(
        {.loss_scale = LossScaleOptions{.first = input.at("args").at("loss_scale_factor")}});
  Json weights = Json::array();
  for (const Json& step : input.at("gradients")) {
    strategy.run([&](ReplicaContext& replica) {
      const Tensor gradient = numbers(step);
      multiply(gradient, replica.replica_id_in_sync_group() + 1);
      optimizer->apply_gradients({{gradient, variable}});
    });
    weights.push_back(show(variable.components()[0]));
  }
  const Json recorded = record.outcome.is_object() ? record.outcome.value("slots", Json::object()) : Json();
  return {{"w_after_each_step", weights},
          {"iterations", optimizer->iterations()},
          {"slots", slots_of(*optimizer, variable, recorded)}};
}

/// Losses are scaled by what the optimizer says.
Json scaled_steps(const Record& record) {
  const Json& input = record.arguments;
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const Variable variable({.name = "w", .initial_value = numbers(input.at("w0"))});
  Sgd optimizer({.learning_rate = 0.1});
  optimizer.set_update_options({.loss_scale = LossScaleOptions{.first = 16, .steps_to_double = 2}});
  Json list = Json::array();
  for (const Json& step : input.at("unscaled_gradients")) {
    strategy.run([&] {
      const Tensor gradient = numbers(step);
      multiply(gradient, optimizer.loss_scale());
      optimizer.apply_gradients({{gradient, variable}});
    });
    const auto [scale, steady] = optimizer.loss_scale_state();
    list.push_back({{"w", show(variable.components()[0])},
                    {"scale", scale},
                    {"step_counter", steady},
                    {"inner_iterations", optimizer.iterations()}});
  }
  return list;
}

Tensor matrix(const Json& rows) {
  Json flat = Json::array();
  for (const Json& row : rows)
    for (const Json& number : row) flat.push_back(number);
  return numbers(flat).reshape({static_cast<std::int64_t>(rows.size()), -1});
}

/// A bias and a kernel; a bias without gradients is left out.
Json two_variables(const Record& record) {
  const Json& input = record.arguments;
  const Variable bias({.name = "bias", .initial_value = numbers(input.at("bias0"))});
  const Variable kernel({.name = "kernel", .initial_value = matrix(input.at("kernel0"))});
  const auto optimizer = configured(input);
  Json list = Json::array();
  for (std::size_t step = 0; step < input.at("kernel_gradients").size(); ++step) {
    std::vector<GradientAndVariable> gradients{{matrix(input.at("kernel_gradients")[step]), kernel}};
    if (!input.at("bias_gradients").is_null())
      gradients.push_back({numbers(input.at("bias_gradients")[step]), bias});
    optimizer->apply_gradients(gradients);
    list.push_back({show(bias.read()), show(kernel.read())});
  }
  return list;
}

}  // namespace

std::vector<Family> optimizer_families() {
  return {{{"w2/optimizer/*/lossscale_*"}, scaled_steps},
          {{"w2/optimizer/default/two_*"}, two_variables},
          {{"w2/optimizer/*"}, steps}};
}

}  // namespace cohort::conformance
