// Whether MPI numbers the workers as their launcher does; what else they must agree on is in
// cluster/agreement.h. The error is the same on all of them, and names those that differ and the likely
// cause.
#pragma once

#include <optional>
#include <span>

#include <cohort/cluster/worker.h>

#include "cluster/launcher.h"

namespace cohort::mpi {

/// That MPI numbers the workers as their launcher does; those whose variables say nothing are left out.
/// @throws InvalidArgument, also on a worker that is alone because MPI knows nothing of its launcher.
void require_places_of_launcher(std::span<const WorkerInfo> workers,
                                std::span<const std::optional<LauncherPlace>> places);

}  // namespace cohort::mpi
