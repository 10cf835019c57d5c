// Communicators whose members have a GPU each, and whose data NCCL moves between them. Before each
// collective the members agree on it over the host, so that calls that differ, and members that do not
// come, end in the same error on all of them as everywhere; NCCL itself would hang.
//
// A call takes what was queued on the compute stream of its GPU before it as its input, and runs
// beside what is queued afterwards, until it is waited for: then the stream goes on after it, and the
// thread goes on at once. What goes wrong on a GPU after that is thrown where the host waits for the GPU
// (to(cpu), synchronize), or by the next call, whichever comes first; what was computed since is
// worthless. Tensors of the CPU are welcome too, and go through the host, as messages do. Calls on GPUs
// may become part of a graph (cohort/cuda/graph.h).
//
// Rounding is NCCL's: sums of 16-bit floats are rounded at each step, and `reproducible` is refused. A
// program with several communicators starts their calls in the same order on all members.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/device/device.h>

namespace cohort::nccl {

/// Members for the GPUs `devices` of this process. `hosts` are their members of a communicator of the CPU
/// with the same members, one per device; they are used until this returns, and give the ranks and the
/// options. Collective over all members.
/// @throws Unavailable on all members alike when NCCL cannot carry them, with the reason: it is missing or
/// too old somewhere, versions differ, GPUs are shared, or it fails to connect them. `hosts` remain usable
/// then.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_communicators(
    std::span<const std::unique_ptr<Communicator>> hosts, std::span<const Device> devices);

}  // namespace cohort::nccl
