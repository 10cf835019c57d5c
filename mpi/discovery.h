// Who takes part: asked once at the start, through MPI's blocking collectives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <cohort/base/config.h>
#include <cohort/cluster/worker.h>

#include "calls.h"
#include "cluster/launcher_place.h"

namespace cohort::mpi {

/// The settings of this process. Where the environment's are wrong, `complaint` says how, and the defaults
/// hold until all workers have heard of it.
struct StartSettings {
  const Config& values;
  std::string complaint = {};
};

/// All processes of `world` by rank, with their nodes; `place` is what this one's launcher says. Collective.
/// @throws InvalidArgument on all of them when they do not run the same version of Cohort, a setting is wrong
/// on one of them, they have different numbers of devices, watch each other in different ways, or are not the
/// ranks that their launchers meant them to be. Different numbers of GPUs are a warning of rank 0.
[[nodiscard]] std::vector<WorkerInfo> discover_workers(MPI_Comm world, const StartSettings& settings,
                                                       const std::optional<LauncherPlace>& place);

}  // namespace cohort::mpi
