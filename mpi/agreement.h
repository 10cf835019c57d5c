// Whether the workers agree on what must be the same on all of them: at the start, that they are
// one job, and with each communicator, what it is. Each check has what all of them say, by rank,
// and throws the same error on all, which names those that differ from most, their hosts, and
// the likely cause.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/cluster/worker.h>

#include "cluster/launcher.h"

namespace cohort::mpi {

/// That MPI numbers the workers as their launcher does; those whose variables say nothing are left out.
/// @throws InvalidArgument, also on a worker that is alone because MPI knows nothing of its launcher.
void require_places_of_launcher(std::span<const WorkerInfo> workers,
                                std::span<const std::optional<LauncherPlace>> places);

/// @throws InvalidArgument naming those whose version is not that of most.
void require_same_version(std::span<const WorkerInfo> workers, std::span<const std::string> versions);

/// `complaints` says what is wrong with each worker's settings; empty: nothing.
/// @throws InvalidArgument with the first of them, its worker and how many others have one.
void require_right_settings(std::span<const WorkerInfo> workers, std::span<const std::string> complaints);

/// @throws InvalidArgument naming those whose number of CPU devices is not that of most.
void require_same_devices(std::span<const WorkerInfo> workers, std::span<const int> devices);

/// `settings` say how a worker watches the others, as the end of a sentence.
/// @throws InvalidArgument naming those whose settings are not those of most.
void require_same_watch(std::span<const WorkerInfo> workers, std::span<const std::string> settings);

/// A warning that names the workers that see another number of GPUs than most; empty if all agree. Only a
/// warning, because the strategy chooses the devices, and an evaluator may need none. Nothing where no
/// variable of a worker names its GPUs.
[[nodiscard]] std::string warning_of_other_gpus(std::span<const WorkerInfo> workers,
                                                std::span<const std::optional<int>> gpus);

/// What all workers must choose alike when they make communicators, and what the others need to know.
struct AgreedSettings {
  int members = 1;  ///< of each worker
  bool reproducible = false;
  bool any_thread = true;  ///< whether MPI may be called by any thread, one at a time; it may differ
};

/// @throws InvalidArgument naming those whose settings are not those of most.
void require_same_settings(std::span<const WorkerInfo> workers, std::span<const AgreedSettings> settings);

}  // namespace cohort::mpi
