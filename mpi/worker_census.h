// Who takes part: asked once at the start, through MPI's blocking collectives.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <cohort/cluster/worker.h>

#include "calls.h"

namespace cohort::mpi {

/// All processes of `world` by rank, with their nodes. Collective.
/// @throws InvalidArgument on all of them when they do not run the same version of Cohort.
[[nodiscard]] std::vector<WorkerInfo> take_census(MPI_Comm world, int workers_per_node);

/// @throws InvalidArgument naming those whose version is not that of most.
void require_same_version(std::span<const WorkerInfo> workers, std::span<const std::string> versions);

}  // namespace cohort::mpi
