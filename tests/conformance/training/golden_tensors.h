// Recorded lists as tensors.
#pragma once

#include <optional>
#include <vector>

#include <cohort/device/tensor.h>

#include "../record.h"

namespace cohort::conformance {

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
