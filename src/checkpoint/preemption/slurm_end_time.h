// When this process's job under Slurm is ended in any case.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <cohort/base/environment.h>

namespace cohort {

/// What `squeue` says of the job of these variables, in seconds since 1970; nothing for a process of no job,
/// a job without an end, and where Slurm does not answer within `limit`, with a warning.
[[nodiscard]] std::optional<std::int64_t> ask_slurm_for_end_time(
    const Environment& variables, std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace cohort
