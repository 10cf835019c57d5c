#include "recorded_optimizers.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
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
#include <cohort/train/schedules/decays.h>

#include "../show.h"

namespace cohort::conformance {
namespace {

/// A number of the line, or its default.
class Arguments {
 public:
  explicit Arguments(const Json& arguments) : arguments_(arguments) {}

  double operator()(const char* name, double fallback) const { return arguments_.value(name, fallback); }
  [[nodiscard]] bool flag(const char* name) const { return arguments_.value(name, false); }
  [[nodiscard]] double rate(double fallback = 0.001) const { return (*this)("learning_rate", fallback); }
  [[nodiscard]] std::optional<double> limit(const char* name) const {
    return arguments_.contains(name) ? std::optional<double>(arguments_.at(name)) : std::nullopt;
  }

 private:
  const Json& arguments_;
};

template <class AnOptimizer, class Options>
std::unique_ptr<Optimizer> with_moments(const Arguments& arguments, Options options) {
  options.learning_rate = arguments.rate();
  options.beta_1 = arguments("beta_1", options.beta_1);
  options.beta_2 = arguments("beta_2", options.beta_2);
  if constexpr (requires { options.epsilon; }) options.epsilon = arguments("epsilon", options.epsilon);
  return std::make_unique<AnOptimizer>(options);
}

std::unique_ptr<Optimizer> with_squares(const std::string& name, const Arguments& arguments) {
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
  if (name == "Ftrl")
    return std::make_unique<Ftrl>(FtrlOptions{.learning_rate = arguments.rate(),
                                              .l1 = arguments("l1_regularization_strength", 0),
                                              .l2 = arguments("l2_regularization_strength", 0)});
  throw std::runtime_error("no optimizer is called " + name);
}

std::unique_ptr<Optimizer> rule_of(const std::string& name, const Arguments& arguments) {
  if (name == "SGD" && arguments("momentum", 0) == 0)
    return std::make_unique<Sgd>(SgdOptions{.learning_rate = arguments.rate(0.01)});
  if (name == "SGD")
    return std::make_unique<Momentum>(MomentumOptions{.learning_rate = arguments.rate(0.01),
                                                      .momentum = arguments("momentum", 0),
                                                      .nesterov = arguments.flag("nesterov")});
  if (name == "Adam") return with_moments<Adam>(arguments, AdamOptions{.amsgrad = arguments.flag("amsgrad")});
  if (name == "AdamW")
    return with_moments<AdamW>(arguments, AdamWOptions{.weight_decay = arguments("weight_decay", 0.004)});
  if (name == "Adamax") return with_moments<Adamax>(arguments, AdamaxOptions{});
  if (name == "Nadam") return with_moments<Nadam>(arguments, NadamOptions{});
  if (name == "Lion") return with_moments<Lion>(arguments, LionOptions{});
  if (name == "Lamb") return with_moments<Lamb>(arguments, LambOptions{});
  return with_squares(name, arguments);
}

/// `compat.v1.train.Momentum(0.1,momentum=.9,nesterov)`: numbers by place or name, and flags.
class CallInWords {
 public:
  explicit CallInWords(std::string_view text) {
    const std::size_t open = std::min(text.find('('), text.size());
    name_ = text.substr(0, open);
    name_.erase(0, name_.rfind('.') + 1);
    std::istringstream words(std::string(text.substr(std::min(open + 1, text.size()))));
    for (std::string word; std::getline(words, word, ',');) {
      std::erase_if(word, [](char letter) { return letter == ' ' || letter == ')'; });
      if (!word.empty()) words_.push_back(word);
    }
  }

  [[nodiscard]] bool is(std::string_view name) const { return name_ == name; }
  [[nodiscard]] double number(std::size_t place, std::string_view name, double fallback) const {
    for (const std::string& word : words_) {
      if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
        return std::stod(word.substr(name.size() + 1));
    }
    const bool is_there =
        place < words_.size() && words_[place].find_first_not_of("0123456789.eE+-") == std::string::npos;
    return is_there ? std::stod(words_[place]) : fallback;
  }
  [[nodiscard]] bool flag(std::string_view name) const {
    return std::ranges::any_of(words_, [&](const std::string& word) {
      return word == name || word == std::string(name) + "=True" || word == std::string(name) + "=true";
    });
  }

 private:
  std::string name_;
  std::vector<std::string> words_;
};

/// Weight decay is an option of all of them. Limits are those of each replica, as in the original.
UpdateOptions update_options_of(const std::string& name, const Json& arguments) {
  const Arguments numbers(arguments);
  UpdateOptions options;
  if (name != "AdamW") options.weight_decay = numbers("weight_decay", 0);
  options.clip = {.value = numbers.limit("clipvalue"),
                  .norm = numbers.limit("clipnorm"),
                  .global_norm = numbers.limit("global_clipnorm")};
  options.clip.each_replica = options.clip.value || options.clip.norm || options.clip.global_norm;
  options.accumulation_steps = arguments.value("gradient_accumulation_steps", 1);
  if (const auto scale = numbers.limit("loss_scale_factor"))
    options.loss_scale = LossScaleOptions{.first = *scale};
  if (numbers.flag("use_ema"))
    options.average = AverageOptions{.momentum = numbers("ema_momentum", 0.99),
                                     .overwrite_every = arguments.value("ema_overwrite_frequency", 0)};
  return options;
}

}  // namespace

std::unique_ptr<Optimizer> optimizer_of(const Json& input) {
  const std::string name = input.at("optimizer");
  auto optimizer = rule_of(name, Arguments(input.at("args")));
  optimizer->set_update_options(update_options_of(name, input.at("args")));
  return optimizer;
}

std::unique_ptr<Optimizer> first_optimizer_of(const std::string& text) {
  const CallInWords call(text);
  const double rate = call.number(0, "learning_rate", 0.001);
  if (call.is("GradientDescent")) return std::make_unique<Sgd>(SgdOptions{.learning_rate = rate});
  if (call.is("Momentum"))
    return std::make_unique<Momentum>(
        MomentumOptions{.learning_rate = rate,
                        .momentum = call.number(1, "momentum", 0),
                        .nesterov = call.flag("nesterov") || call.flag("use_nesterov")});
  if (call.is("Adam"))
    return std::make_unique<Adam>(AdamOptions{.learning_rate = rate,
                                              .beta_1 = call.number(1, "beta1", 0.9),
                                              .beta_2 = call.number(2, "beta2", 0.999),
                                              .epsilon = call.number(3, "epsilon", 1e-8)});
  if (call.is("Adagrad"))
    return std::make_unique<Adagrad>(AdagradOptions{
        .learning_rate = rate, .initial_accumulator = call.number(1, "initial_accumulator_value", 0.1)});
  if (call.is("Adadelta"))
    return std::make_unique<Adadelta>(AdadeltaOptions{.learning_rate = rate,
                                                      .rho = call.number(1, "rho", 0.95),
                                                      .epsilon = call.number(2, "epsilon", 1e-8)});
  if (call.is("RMSProp"))
    return std::make_unique<RmsProp>(RmsPropOptions{.learning_rate = rate,
                                                    .rho = call.number(1, "decay", 0.9),
                                                    .momentum = call.number(2, "momentum", 0),
                                                    .epsilon = call.number(3, "epsilon", 1e-10),
                                                    .centered = call.flag("centered"),
                                                    .initial_square = 1});
  if (call.is("Ftrl"))
    return std::make_unique<Ftrl>(
        FtrlOptions{.learning_rate = rate,
                    .initial_accumulator = call.number(2, "initial_accumulator_value", 0.1),
                    .l1 = call.number(3, "l1_regularization_strength", 0),
                    .l2 = call.number(4, "l2_regularization_strength", 0)});
  throw std::runtime_error("no optimizer here is " + text);
}

std::unique_ptr<Optimizer> optimizer_in_words(const std::string& text) {
  const auto has = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  if (has("AdamW(0.05)"))
    return std::make_unique<AdamW>(AdamWOptions{.learning_rate = 0.05, .weight_decay = 0.004});
  if (has("RMSprop(0.05)")) return std::make_unique<RmsProp>(RmsPropOptions{.learning_rate = 0.05});
  if (has(", momentum .9"))
    return std::make_unique<Momentum>(MomentumOptions{.learning_rate = 0.1, .momentum = 0.9});
  auto sgd = std::make_unique<Sgd>(SgdOptions{.learning_rate = has("SGD(0.01)") ? 0.01 : 0.1});
  if (has("ExponentialDecay(0.1, 2, .5)"))
    sgd->set_learning_rate(exponential_decay({.learning_rate = 0.1, .steps = 2, .rate = 0.5}));
  UpdateOptions options;
  if (has("global_clipnorm .3"))
    options.clip.global_norm = 0.3;
  else if (has("clipnorm .3"))
    options.clip.norm = 0.3;
  if (has("gradient_accumulation_steps 2")) options.accumulation_steps = 2;
  if (has("use_ema"))
    options.average = AverageOptions{.momentum = 0.5, .overwrite_every = has("overwrite every 3") ? 3 : 0};
  sgd->set_update_options(options);
  return sgd;
}

Json slots_by_recorded_names(const Optimizer& optimizer, const Variable& variable, const Json& recorded) {
  static const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> kNames{
      {"w_momentum", {"velocity", "first_moment", "moment"}},
      {"w_velocity", {"second_moment", "mean_square"}},
      {"w_velocity_hat", {"largest_second_moment"}},
      {"w_norm", {"largest_gradient"}},
      {"w_accumulator", {"squares"}},
      {"w_accumulated_grad", {"squares"}},
      {"w_accumulated_delta_var", {"changes"}},
      {"w_average_gradient", {"mean"}},
      {"w_linear", {"linear"}},
      {"w_average", {"average"}}};
  const std::vector<std::string> names = optimizer.all_slot_names(variable.dtype());
  Json slots = Json::object();
  for (const auto& [theirs, ours] : kNames) {
    if (!recorded.contains(theirs)) continue;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (std::ranges::find(ours, names[i]) != ours.end())
        slots[std::string(theirs)] = show(optimizer.read_slot(variable, i));
  }
  for (const char* const none_here : {"w_gradient_accumulator", "variable"})
    if (recorded.contains(none_here)) slots[none_here] = recorded.at(none_here);
  return slots;
}

namespace {

// Steps of optimizers from their formulas, in float64.

using Numbers = std::vector<double>;

/// What one replica has of a gradient: the gradient, times its number from 1 on, within the limits.
Numbers clipped(const Numbers& gradient, int replica, const Json& arguments) {
  Numbers own;
  double squares = 0;
  for (const double element : gradient) {
    own.push_back(element * replica);
    squares += own.back() * own.back();
  }
  for (const char* const limit : {"clipnorm", "global_clipnorm"})
    if (arguments.contains(limit))
      for (double& element : own)
        element *= std::min(1.0, arguments.at(limit).get<double>() / std::sqrt(squares));
  if (arguments.contains("clipvalue"))
    for (double& element : own)
      element = std::clamp(element, -arguments.at("clipvalue").get<double>(),
                           arguments.at("clipvalue").get<double>());
  return own;
}

/// One variable, and all that optimizers keep for it.
struct Trained {
  explicit Trained(const Json& input) : arguments(input.at("args")), is_adam(input.at("optimizer") != "SGD") {
    value = input.at("w0").get<Numbers>();
    first = second = largest = average = Numbers(value.size());
    decay = arguments.value("weight_decay", input.at("optimizer") == "AdamW" ? 0.004 : 0.0);
  }

  void step(const Numbers& gradient) {
    ++steps;
    for (std::size_t i = 0; i < value.size(); ++i) {
      value[i] -= rate() * decay * value[i];
      value[i] += is_adam ? by_adam(i, gradient[i]) : by_momentum(i, gradient[i]);
    }
    if (!arguments.value("use_ema", false)) return;
    const double kept = steps == 1 ? 0 : arguments.value("ema_momentum", 0.99);
    for (std::size_t i = 0; i < value.size(); ++i) average[i] = kept * average[i] + (1 - kept) * value[i];
    const int every = arguments.value("ema_overwrite_frequency", 0);
    if (every > 0 && steps % every == 0) value = average;
  }

  double by_momentum(std::size_t i, double slope) {
    first[i] = arguments.value("momentum", 0.0) * first[i] - rate() * slope;
    return first[i];
  }

  /// Kingma and Ba 2015, in the order of computation that follows their algorithm 1.
  double by_adam(std::size_t i, double slope) {
    const double beta_1 = arguments.value("beta_1", 0.9);
    const double beta_2 = arguments.value("beta_2", 0.999);
    first[i] = beta_1 * first[i] + (1 - beta_1) * slope;
    second[i] = beta_2 * second[i] + (1 - beta_2) * slope * slope;
    largest[i] = std::max(largest[i], second[i]);
    const double divisor = arguments.value("amsgrad", false) ? largest[i] : second[i];
    const double corrected = rate() * std::sqrt(1 - std::pow(beta_2, steps)) / (1 - std::pow(beta_1, steps));
    return -corrected * first[i] / (std::sqrt(divisor) + arguments.value("epsilon", 1e-7));
  }

  [[nodiscard]] double rate() const { return arguments.value("learning_rate", is_adam ? 0.001 : 0.01); }

  const Json& arguments;
  bool is_adam;
  double decay = 0;
  int steps = 0;
  Numbers value;
  Numbers first;
  Numbers second;
  Numbers largest;
  Numbers average;
};

}  // namespace

Json by_hand(const Record& record) {
  const Json& input = record.arguments;
  Trained trained(input);
  const int replicas = record.id.find("mirrored3") != std::string::npos   ? 3
                       : record.id.find("mirrored2") != std::string::npos ? 2
                                                                          : 1;
  const int calls = trained.arguments.value("gradient_accumulation_steps", 1);
  Json values = Json::array();
  Numbers sum(trained.value.size());
  for (const Json& gradient : input.at("gradients")) {
    for (int replica = 1; replica <= replicas; ++replica) {
      const Numbers own = clipped(gradient.get<Numbers>(), replica, trained.arguments);
      for (std::size_t i = 0; i < own.size(); ++i) sum[i] += own[i] / calls;
    }
    if ((values.size() + 1) % static_cast<std::size_t>(calls) == 0) {
      trained.step(sum);
      sum.assign(sum.size(), 0);
    }
    values.push_back(trained.value);
  }
  const Json recorded = record.outcome.value("slots", Json::object());
  Json slots = Json::object();
  const auto add = [&](const char* name, const Numbers& numbers) {
    if (recorded.contains(name)) slots[name] = numbers;
  };
  add("w_momentum", trained.first);
  add("w_velocity", trained.second);
  add("w_velocity_hat", trained.largest);
  add("w_average", trained.average);
  add("w_gradient_accumulator", Numbers(trained.value.size()));
  Json outcome{{"w_after_each_step", values}, {"iterations", trained.steps}, {"slots", slots}};
  if (record.outcome.contains("w_after_finalize_variable_values"))
    outcome["w_after_finalize_variable_values"] = trained.average;
  return outcome;
}

}  // namespace cohort::conformance
