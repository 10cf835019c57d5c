// The members of a run whose tensors are on GPUs: which GPU and which communicator each of them has, both
// chosen as strategies choose them.
#pragma once

#include <memory>
#include <vector>

#include <cohort/cluster/bootstrap.h>
#include <cohort/collective/communicator.h>

namespace cohort::bench {

/// The first `members` GPUs that this process sees.
/// @throws UsageError when there are fewer, or none, with the reason.
[[nodiscard]] std::vector<Device> gpus_of_threads(int members);

/// The first GPU of this rank. Collective over the ranks.
[[nodiscard]] Device gpu_of_rank(Bootstrap& bootstrap);

/// The communicators for tensors on `devices`, made of those for tensors on the host. Collective over the
/// members; `bootstrap` is null for threads.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> on_gpus(
    std::vector<std::unique_ptr<Communicator>> communicators, const std::vector<Device>& devices,
    Bootstrap* bootstrap);

}  // namespace cohort::bench
