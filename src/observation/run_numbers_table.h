// The numbers of a run as a table for people.
#pragma once

#include <span>
#include <string>

#include <cohort/cluster/worker.h>

#include "collective/choice/choice_log.h"
#include "run_numbers.h"

namespace cohort {

/// Lines, each with its end. `workers` are all of the job by rank, `seconds` is how long it took, `choices`
/// are the chief's.
[[nodiscard]] std::string table_of(const RunNumbers& numbers, std::span<const WorkerInfo> workers,
                                   double seconds, std::span<const LoggedChoice> choices);

}  // namespace cohort
