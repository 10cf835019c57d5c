// Which GPUs belong to this worker when the program names none: those that the launcher gave to it alone, or
// its share of the GPUs that all workers of the node see.
#pragma once

#include <vector>

#include <cohort/cluster/bootstrap.h>
#include <cohort/device/device.h>

namespace cohort {

/// Empty if no worker sees any GPU. Collective over the workers, in programs that are linked with GPU
/// support; `bootstrap` is null for a process on its own, which takes all that it sees.
/// @throws Unavailable on every worker when some see GPUs and others do not, naming one, or when workers
/// of a node see different but overlapping ones.
[[nodiscard]] std::vector<Device> gpus_of_this_worker(Bootstrap* bootstrap);

}  // namespace cohort
