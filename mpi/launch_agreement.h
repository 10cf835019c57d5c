// Whether the processes that meet at the start are one job: each check has what all of them
// say, by rank, and throws the same error on all, which names those that are odd, their hosts,
// and the likely cause.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <cohort/cluster/worker.h>

#include "cluster/launcher_place.h"

namespace cohort::mpi {

/// That MPI numbers the workers as their launcher does; those whose variables say nothing are left out.
/// @throws InvalidArgument, also on a worker that is alone because MPI knows nothing of its launcher.
void require_places_of_launcher(std::span<const WorkerInfo> workers,
                                std::span<const std::optional<LauncherPlace>> places);

/// @throws InvalidArgument naming those whose version is not that of most.
void require_same_version(std::span<const WorkerInfo> workers, std::span<const std::string> versions);

/// @throws InvalidArgument naming those whose number of CPU devices is not that of most.
void require_same_devices(std::span<const WorkerInfo> workers, std::span<const int> devices);

/// A warning that names those whose variables leave them another number of GPUs than most have, where a
/// number may be missing; empty when all have the same. No error, for what a worker computes on is its
/// strategy's choice, and an evaluator may do without.
[[nodiscard]] std::string warning_of_other_gpus(std::span<const WorkerInfo> workers,
                                                std::span<const std::optional<int>> gpus);

}  // namespace cohort::mpi
