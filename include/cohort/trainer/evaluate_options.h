// What `evaluate` and `predict` of a Trainer take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <cohort/trainer/callback.h>

namespace cohort {

/// Callbacks are the caller's, who may ask them afterwards, and are called in this order.
using CallbackList = std::vector<std::reference_wrapper<Callback>>;

struct EvaluateOptions {
  std::optional<std::int64_t> steps = {};  ///< at most; unset: all
  CallbackList callbacks = {};
};

using PredictOptions = EvaluateOptions;

}  // namespace cohort
