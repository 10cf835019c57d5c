// The environment of a run as JSON, for the reports that have it.
#pragma once

#include <nlohmann/json.hpp>

#include "environment.h"

namespace cohort::bench {

[[nodiscard]] nlohmann::ordered_json to_json(const Environment& environment);

}  // namespace cohort::bench
