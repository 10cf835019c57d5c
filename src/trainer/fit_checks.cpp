#include "trainer/fit_checks.h"

#include <algorithm>

namespace cohort::detail {
namespace {

void require_positive(const char* name, std::optional<std::int64_t> number) {
  if (number && *number < 1)
    throw InvalidArgument("fit: {} is {}; it must be at least 1, or unset", name, *number);
}

void require_end(const char* function, bool has_steps, const char* steps, const Cardinality& data) {
  if (data.is_infinite() && !has_steps)
    throw InvalidArgument("{}: the dataset has no end; say by {} how many of its batches to take", function,
                          steps);
}

void require_elements(const char* function, const Cardinality& data) {
  if (data.is_known() && data.count() == 0)
    throw InvalidArgument("{}: the dataset is empty: it has not one batch", function);
}

}  // namespace

void require_usable(const FitPlan& plan, const Cardinality& data) {
  if (plan.epochs < 0) throw InvalidArgument("fit: epochs is {}; it must be at least 0", plan.epochs);
  if (plan.initial_epoch < 0)
    throw InvalidArgument("fit: initial_epoch is {}; the first epoch is 0", plan.initial_epoch);
  require_positive("steps_per_epoch", plan.steps_per_epoch);
  require_positive("validation_steps", plan.validation_steps);
  require_positive("validation_freq", plan.validation_freq);
  for (const int epoch : plan.validation_epochs) require_positive("a number of validation_epochs", epoch);
  if (plan.max_steps && *plan.max_steps < 0)
    throw InvalidArgument("fit: max_steps is {}; it must be at least 0, or unset", *plan.max_steps);
  require_end("fit", plan.steps_per_epoch || plan.max_steps, "steps_per_epoch", data);
  require_elements("fit", data);
  if (plan.validation == nullptr) return;
  require_end("fit: validation_data", plan.validation_steps.has_value(), "validation_steps",
              plan.validation->cardinality());
  require_elements("fit: validation_data", plan.validation->cardinality());
}

void require_own(const Strategy& strategy, std::span<const Variable> parameters) {
  for (const Variable& parameter : parameters) {
    if (!strategy.extended().variable_created_in_scope(parameter))
      throw WrongContext(
          "the Trainer of {} was given the variable '{}', which it has not made; make the model in "
          "strategy.scope()",
          strategy.extended().strategy_name(), parameter.name());
  }
}

std::optional<std::int64_t> steps_of(std::optional<std::int64_t> most, const Cardinality& data) {
  if (!data.is_known()) return most;
  return std::min(most.value_or(data.count()), data.count());
}

std::optional<std::int64_t> steps_of(const FitPlan& plan, const Cardinality& data) {
  if (plan.steps_per_epoch) return plan.steps_per_epoch;
  return data.is_known() ? std::optional(data.count()) : std::nullopt;
}

bool validates_after(int epoch, const FitPlan& plan) {
  if (plan.validation == nullptr) return false;
  if (plan.validation_epochs.empty()) return (epoch + 1) % plan.validation_freq == 0;
  return std::ranges::find(plan.validation_epochs, epoch + 1) != plan.validation_epochs.end();
}

void require_steps(const char* function, const std::optional<std::int64_t>& steps, const Cardinality& data) {
  if (steps && *steps < 1)
    throw InvalidArgument("{}: steps is {}; it must be at least 1, or unset", function, *steps);
  require_end(function, steps.has_value(), "steps", data);
  require_elements(function, data);
}

}  // namespace cohort::detail
