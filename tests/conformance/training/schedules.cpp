// Recorded lines of learning-rate schedules.
#include <string>
#include <vector>

#include <cohort/train/schedules/decays.h>

#include "families.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kWarmUp = "a warm-up has no negative steps";

DecayOptions decay_of(const Json& arguments) {
  return {.learning_rate = arguments.at("initial_learning_rate"),
          .steps = arguments.at("decay_steps"),
          .rate = arguments.at("decay_rate"),
          .staircase = arguments.value("staircase", false)};
}

/// With a warm-up, the cosine begins at its target.
LearningRateSchedule cosine_of(const Json& arguments) {
  const double first = arguments.at("initial_learning_rate");
  const double highest = arguments.value("warmup_target", first);
  const LearningRateSchedule decay = cosine_decay({.learning_rate = highest,
                                                   .steps = arguments.at("decay_steps"),
                                                   .alpha = arguments.value("alpha", 0.0)});
  if (!arguments.contains("warmup_steps")) return decay;
  return warm_up(decay, {.steps = arguments.at("warmup_steps"), .first_learning_rate = first});
}

LearningRateSchedule schedule_of(const std::string& name, const Json& arguments) {
  if (name == "ExponentialDecay") return exponential_decay(decay_of(arguments));
  if (name == "InverseTimeDecay") return inverse_time_decay(decay_of(arguments));
  if (name == "CosineDecay") return cosine_of(arguments);
  if (name == "PiecewiseConstantDecay")
    return piecewise_constant(arguments.at("boundaries"), arguments.at("values"));
  if (name == "PolynomialDecay")
    return polynomial_decay({.learning_rate = arguments.at("initial_learning_rate"),
                             .steps = arguments.at("decay_steps"),
                             .end_learning_rate = arguments.value("end_learning_rate", 0.0001),
                             .power = arguments.value("power", 1.0)});
  return cosine_restarts({.learning_rate = arguments.at("initial_learning_rate"),
                          .first_steps = arguments.at("first_decay_steps"),
                          .period_factor = arguments.value("t_mul", 2.0),
                          .learning_rate_factor = arguments.value("m_mul", 1.0)});
}

/// Those of the first version, whose arguments stand in their names.
LearningRateSchedule first_schedule_of(const std::string& name) {
  const DecayOptions halved{.learning_rate = 0.1, .steps = 10, .rate = 0.5};
  DecayOptions in_stairs = halved;
  in_stairs.staircase = true;
  if (name.ends_with("exponential_decay(0.1,g,10,0.5)")) return exponential_decay(halved);
  if (name.ends_with("natural_exp_decay(0.1,g,10,0.5)")) return natural_exponential_decay(halved);
  if (name.ends_with("natural_exp_decay(0.1,g,10,0.5,staircase)"))
    return natural_exponential_decay(in_stairs);
  if (name.ends_with("inverse_time_decay(0.1,g,10,0.5)")) return inverse_time_decay(halved);
  return cosine_decay({.learning_rate = 0.1, .steps = 100, .alpha = 0.1});
}

Json rates(const Record& record) {
  const Json& input = record.arguments;
  const std::string name = input.at("schedule");
  const LearningRateSchedule schedule =
      input.contains("args") ? schedule_of(name, input.at("args")) : first_schedule_of(name);
  Json rates = Json::array();
  for (const std::int64_t step : input.at("steps")) rates.push_back(schedule(step));
  return rates;
}

Json at_the_edge(const Record& record) {
  const std::string what = record.arguments.at("op");
  if (what == "decay_steps0") return cosine_decay({.learning_rate = 0.1, .steps = 0})(0);
  if (what == "exp_steps0") return exponential_decay({.learning_rate = 0.1, .steps = 0, .rate = 0.5})(0);
  if (what == "restarts_steps0") return cosine_restarts({.learning_rate = 0.1, .first_steps = 0})(0);
  if (what == "neg_step") return exponential_decay({.learning_rate = 0.1, .steps = 10, .rate = 0.5})(-5);
  return warm_up(cosine_decay({.learning_rate = 0.2, .steps = 10}), {.steps = -1})(0);
}

}  // namespace

std::vector<Family> schedule_families() {
  return {{{"w2/lr_schedule/none/edge_*"},
           at_the_edge,
           {{"*/edge_warmup_neg", kWarmUp, [](const Record&) { return an_error(); }}}},
          {{"w2/lr_schedule/*"}, rates}};
}

}  // namespace cohort::conformance
