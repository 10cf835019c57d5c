// The values of a checkpoint as every worker has them, so that any group of workers can write all of them.
#pragma once

#include <map>
#include <string>

#include <cohort/checkpoint/checkpoint.h>

#include "checkpoint/workers.h"

namespace cohort::checkpoint {

/// Values that all have stay as they are. Those that all workers read together are read, and those that the
/// first worker alone has are sent to the others. Collective.
/// @throws InvalidArgument where workers have other values.
[[nodiscard]] std::map<std::string, NamedValue> shared_with_all(
    const Workers& workers, const std::map<std::string, NamedValue>& values);

}  // namespace cohort::checkpoint
