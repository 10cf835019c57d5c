// The families of recorded lines about training.
#pragma once

#include <optional>
#include <vector>

#include <cohort/device/tensor.h>

#include "../record.h"
#include "../scenario.h"

namespace cohort::conformance {

[[nodiscard]] std::vector<Family> batch_norm_families();
[[nodiscard]] std::vector<Family> callback_families();
[[nodiscard]] std::vector<Family> callback_order_families();
[[nodiscard]] std::vector<Family> estimator_families();
[[nodiscard]] std::vector<Family> fit_checkpoint_families();
[[nodiscard]] std::vector<Family> event_format_families();
[[nodiscard]] std::vector<Family> fit_families();
[[nodiscard]] std::vector<Family> logger_families();
[[nodiscard]] std::vector<Family> loss_families();
[[nodiscard]] std::vector<Family> schedule_families();
[[nodiscard]] std::vector<Family> scripted_callback_families();
[[nodiscard]] std::vector<Family> metric_families();
[[nodiscard]] std::vector<Family> first_metric_families();
[[nodiscard]] std::vector<Family> optimizer_families();
[[nodiscard]] std::vector<Family> summary_families();

// Recorded lists as tensors.

/// Nested lists of numbers, as float32.
[[nodiscard]] inline Tensor tensor_of(const Json& lists) {
  std::vector<std::int64_t> extents;
  for (const Json* level = &lists; level->is_array(); level = &level->front()) {
    extents.push_back(static_cast<std::int64_t>(level->size()));
    if (level->empty()) break;
  }
  std::vector<float> values;
  const auto flatten = [&values](const auto& self, const Json& part) -> void {
    if (!part.is_array()) return values.push_back(part.get<float>());
    for (const Json& each : part) self(self, each);
  };
  flatten(flatten, lists);
  return Tensor::from(values, Shape(extents));
}

/// Nothing for null.
[[nodiscard]] inline std::optional<Tensor> optional_tensor_of(const Json& lists) {
  if (lists.is_null()) return std::nullopt;
  return tensor_of(lists);
}

}  // namespace cohort::conformance
