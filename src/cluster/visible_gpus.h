// The GPUs that a launcher leaves a process, as its variables give them; no driver is asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <cohort/base/environment.h>

namespace cohort {

/// The entries of CUDA_VISIBLE_DEVICES up to the first that is neither a number nor a GPU's identifier;
/// nothing where it is not set.
[[nodiscard]] std::optional<std::vector<std::string>> listed_gpus(
    const Environment& variables = process_environment());

/// The number of listed GPUs, or else SLURM_GPUS_ON_NODE; nothing where neither is set, or the latter is no
/// number.
[[nodiscard]] std::optional<int> visible_gpus(const Environment& variables = process_environment());

}  // namespace cohort
