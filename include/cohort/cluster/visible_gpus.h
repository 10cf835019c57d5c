// The GPUs that a launcher leaves a process, by its variables alone: no driver is asked.
#pragma once

#include <optional>

#include <cohort/base/environment.h>

namespace cohort {

/// As many as CUDA_VISIBLE_DEVICES lists, which counts up to the first entry that is neither a number nor a
/// GPU's identifier, or as SLURM_GPUS_ON_NODE says; nothing where neither is set, or
/// the latter is no number.
[[nodiscard]] std::optional<int> visible_gpus(const Environment& variables = process_environment());

}  // namespace cohort
