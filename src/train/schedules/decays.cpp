#include <cohort/train/schedules/decays.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include <cohort/base/error.h>

#include "train/optimizers/require_option.h"

namespace cohort {
namespace {

void require(bool holds, std::string_view schedule, std::string_view option, double value,
             std::string_view what) {
  if (!holds) throw InvalidArgument("{}: {} is {}; it must be {}", schedule, option, value, what);
}

void require_part(std::string_view schedule, std::string_view option, double value) {
  require(value >= 0 && value <= 1, schedule, option, value, "from 0 to 1");
}

void require_decay(std::string_view schedule, const DecayOptions& options) {
  require_not_negative(schedule, "learning_rate", options.learning_rate);
  require_positive(schedule, "steps", options.steps);
  require_not_negative(schedule, "rate", options.rate);
}

/// How often the rate has fallen.
double falls(const DecayOptions& options, std::int64_t step) {
  const double falls = static_cast<double>(step) / options.steps;
  return options.staircase ? std::floor(falls) : falls;
}

/// From 1 to 0 as `part` goes from 0 to 1.
double half_cosine(double part) { return (1 + std::cos(std::numbers::pi * part)) / 2; }

double along_cosine(double from, double to, double part) { return to + (from - to) * half_cosine(part); }

/// The number of the period that has begun, and what part of it is over.
std::pair<double, double> period_at(double first_periods, double factor) {
  if (factor == 1) {
    const double period = std::floor(first_periods);
    return {period, first_periods - period};
  }
  const auto begin_of = [factor](double period) { return (1 - std::pow(factor, period)) / (1 - factor); };
  double period = std::floor(std::log(1 - first_periods * (1 - factor)) / std::log(factor));
  // Rounding of the logarithms may miss by one at the begin of a period.
  if (begin_of(period + 1) <= first_periods) ++period;
  if (begin_of(period) > first_periods) --period;
  return {period, (first_periods - begin_of(period)) / std::pow(factor, period)};
}

}  // namespace

LearningRateSchedule piecewise_constant(std::vector<std::int64_t> boundaries, std::vector<double> values) {
  if (values.size() != boundaries.size() + 1)
    throw InvalidArgument("piecewise_constant: {} values for {} boundaries; there must be one value more",
                          values.size(), boundaries.size());
  if (std::ranges::adjacent_find(boundaries, std::greater_equal()) != boundaries.end())
    throw InvalidArgument("piecewise_constant: the boundaries must rise");
  for (const double value : values) require_not_negative("piecewise_constant", "a value", value);
  return [boundaries = std::move(boundaries), values = std::move(values)](std::int64_t step) {
    const auto place = std::ranges::lower_bound(boundaries, step) - boundaries.begin();
    return values[static_cast<std::size_t>(place)];
  };
}

LearningRateSchedule exponential_decay(const DecayOptions& options) {
  require_decay("exponential_decay", options);
  return [options](std::int64_t step) {
    return options.learning_rate * std::pow(options.rate, falls(options, step));
  };
}

LearningRateSchedule natural_exponential_decay(const DecayOptions& options) {
  require_decay("natural_exponential_decay", options);
  return [options](std::int64_t step) {
    return options.learning_rate * std::exp(-options.rate * falls(options, step));
  };
}

LearningRateSchedule inverse_time_decay(const DecayOptions& options) {
  require_decay("inverse_time_decay", options);
  return [options](std::int64_t step) {
    return options.learning_rate / (1 + options.rate * falls(options, step));
  };
}

LearningRateSchedule polynomial_decay(const PolynomialDecayOptions& options) {
  require_not_negative("polynomial_decay", "learning_rate", options.learning_rate);
  require_positive("polynomial_decay", "steps", options.steps);
  require_not_negative("polynomial_decay", "end_learning_rate", options.end_learning_rate);
  require_positive("polynomial_decay", "power", options.power);
  return [options](std::int64_t step) {
    const auto made = static_cast<double>(step);
    const double steps =
        options.cycle ? options.steps * std::max(1.0, std::ceil(made / options.steps)) : options.steps;
    const double left = 1 - std::min(made, steps) / steps;
    return (options.learning_rate - options.end_learning_rate) * std::pow(left, options.power) +
           options.end_learning_rate;
  };
}

LearningRateSchedule cosine_decay(const CosineDecayOptions& options) {
  require_not_negative("cosine_decay", "learning_rate", options.learning_rate);
  require_positive("cosine_decay", "steps", options.steps);
  require_part("cosine_decay", "alpha", options.alpha);
  return [options](std::int64_t step) {
    const double part = std::min(static_cast<double>(step) / options.steps, 1.0);
    return along_cosine(options.learning_rate, options.learning_rate * options.alpha, part);
  };
}

LearningRateSchedule cosine_restarts(const CosineRestartsOptions& options) {
  require_not_negative("cosine_restarts", "learning_rate", options.learning_rate);
  require_positive("cosine_restarts", "first_steps", options.first_steps);
  require(std::isfinite(options.period_factor) && options.period_factor >= 1, "cosine_restarts",
          "period_factor", options.period_factor, "at least 1");
  require_not_negative("cosine_restarts", "learning_rate_factor", options.learning_rate_factor);
  require_part("cosine_restarts", "alpha", options.alpha);
  return [options](std::int64_t step) {
    const auto [period, part] =
        period_at(static_cast<double>(step) / options.first_steps, options.period_factor);
    const double height = std::pow(options.learning_rate_factor, period) * half_cosine(part);
    return options.learning_rate * ((1 - options.alpha) * height + options.alpha);
  };
}

LearningRateSchedule one_cycle(const OneCycleOptions& options) {
  require_not_negative("one_cycle", "highest_learning_rate", options.highest_learning_rate);
  require_positive("one_cycle", "steps", static_cast<double>(options.steps));
  require_part("one_cycle", "rising", options.rising);
  require_positive("one_cycle", "first_divisor", options.first_divisor);
  require_positive("one_cycle", "last_divisor", options.last_divisor);
  const auto steps = static_cast<double>(options.steps);
  const double top = std::max(0.0, options.rising * steps - 1);
  return [options, top, end = steps - 1](std::int64_t step) {
    const double highest = options.highest_learning_rate;
    const double first = highest / options.first_divisor;
    const double at = std::min(static_cast<double>(step), end);
    if (at < top) return along_cosine(first, highest, at / top);
    return along_cosine(highest, first / options.last_divisor, end > top ? (at - top) / (end - top) : 1);
  };
}

LearningRateSchedule warm_up(LearningRateSchedule then, const WarmUpOptions& options) {
  require(options.steps >= 0, "warm_up", "steps", static_cast<double>(options.steps), "at least 0");
  require_not_negative("warm_up", "first_learning_rate", options.first_learning_rate);
  return [then = std::move(then), options](std::int64_t step) {
    if (step >= options.steps) return then(step - options.steps);
    const double first = options.first_learning_rate;
    return first + (then(0) - first) * static_cast<double>(step) / static_cast<double>(options.steps);
  };
}

}  // namespace cohort
