// The optimizers of the recorded lines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/train/optimizers/optimizer.h>

#include "../record.h"

namespace cohort::conformance {

/// Why lines of optimizers and of fit come out differently.
inline constexpr std::string_view kAdamInDoubles = "Adam corrects its rate in float64";
inline constexpr std::string_view kInReplicas = "conditional steps work in replicas";

/// What a line calls `optimizer`, with its `args`; all others are the original's defaults.
[[nodiscard]] std::unique_ptr<Optimizer> optimizer_of(const Json& input);

/// A name of the original's compat.v1.train, with its arguments: `Momentum(0.1,0.9)`.
[[nodiscard]] std::unique_ptr<Optimizer> first_optimizer_of(const std::string& text);

/// What a line of fit says in words: `SGD(0.1, clipnorm .3)`.
[[nodiscard]] std::unique_ptr<Optimizer> optimizer_in_words(const std::string& text);

/// Steps of SGD or Adam with their options, computed from the formulas in float64: what a line of `steps`
/// has.
[[nodiscard]] Json by_hand(const Record& record);

/// Slots of a variable by what the original calls them, of those that `recorded` has. It has two that are
/// none here: the sum of accumulated gradients is empty after a step, and the product of Nadam's momenta
/// follows from the number of the step.
[[nodiscard]] Json slots_by_recorded_names(const Optimizer& optimizer, const Variable& variable,
                                           const Json& recorded);

}  // namespace cohort::conformance
