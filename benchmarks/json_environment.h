// The environment of a run as JSON, for the reports that have it.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "environment.h"

namespace cohort::bench {

[[nodiscard]] nlohmann::ordered_json to_json(const Environment& environment);

/// A figure that a row may not have.
template <class T>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace cohort::bench
