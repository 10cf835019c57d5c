// What can be wrong with the options of a fit, before it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <cohort/trainer/detail/training_loop.h>

namespace cohort::detail {

/// @throws InvalidArgument for options that cannot be, and for a dataset without an end or without elements.
void require_usable(const FitPlan& plan, const Cardinality& data);

/// @throws WrongContext for a variable that the strategy has not made, naming it.
void require_own(const Strategy& strategy, std::span<const Variable> parameters);

/// The steps of an epoch, where they are known.
[[nodiscard]] std::optional<std::int64_t> steps_of(const FitPlan& plan, const Cardinality& data);

/// The steps over a dataset of which at most so many are taken, where they are known.
[[nodiscard]] std::optional<std::int64_t> steps_of(std::optional<std::int64_t> most, const Cardinality& data);

/// Whether the epoch, from 0, is followed by a validation.
[[nodiscard]] bool validates_after(int epoch, const FitPlan& plan);

/// @throws InvalidArgument for a number of steps below 1, and for a dataset without an end and without it.
void require_steps(const char* function, const std::optional<std::int64_t>& steps, const Cardinality& data);

}  // namespace cohort::detail
