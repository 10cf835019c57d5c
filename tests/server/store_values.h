// What the tests of stores write and read.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <cohort/device/tensor.h>

#include "server/store/store.h"

namespace cohort::server {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::vector<float> floats(const Tensor& tensor) {
  const std::span<float> elements = tensor.span<float>();
  return {elements.begin(), elements.end()};
}

/// Overwrites the variable and its slots with `value`, in a commit.
inline void commit_value(Store& store, VariableIndex variable, double value,
                         std::optional<Execution> execution = {}, std::string_view result = {}) {
  store.begin();
  const Store::Change change = store.overwrite(variable);
  change.fresh_value.fill(value);
  for (const Tensor& slot : change.fresh_slots) slot.fill(value);
  store.commit(execution, bytes_of(result));
}

}  // namespace cohort::server
