// Writes the values of a checkpoint: each worker a file with its parts, then the first worker what makes them
// a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <cohort/checkpoint/checkpoint.h>

#include "workers.h"

namespace cohort::checkpoint {

/// @throws InvalidArgument for a name that is empty, reserved by the format or not UTF-8.
void require_name(const std::string& name);

/// Collective over the workers. `lock` and `metrics` as in Checkpoint. @throws as Checkpoint::save.
void write_checkpoint(const Workers& workers, const std::map<std::string, NamedValue>& values,
                      const std::string& folder, std::int64_t step, const WriterLock* lock,
                      const std::map<std::string, double>& metrics);

}  // namespace cohort::checkpoint
