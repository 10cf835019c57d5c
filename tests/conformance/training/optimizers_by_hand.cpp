// Steps of optimizers from their formulas, in float64.
#include <algorithm>
#include <cmath>

#include "recorded_optimizers.h"

namespace cohort::conformance {
namespace {

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
