// Communicators whose members have a GPU each, and whose data NCCL moves between them. Before each collective
// the members agree on it over the host. So calls that differ, and members that do not arrive, end in the
// same error on all of them, as with every communicator; NCCL itself would hang.
//
// A call begins when its GPU has done the work that was queued on the compute stream before, and runs beside
// work that is queued later. Waiting for the call orders the stream after its end; the waiting thread goes on
// at once. An error on a GPU after that is thrown where the host waits for the GPU (to(cpu), synchronize), or
// by the next call, whichever comes first; results computed since are worthless. CPU tensors may be passed
// too; they go through the host, as messages do. Calls on GPUs may be captured in a graph
// (cohort/cuda/graph.h).
//
// Rounding is NCCL's: sums of 16-bit floats are rounded at each step, and `reproducible` is refused. A
// program with several communicators starts their calls in the same order on all members; each GPU gets them
// in this order. All members destroy a communicator at about the same time: NCCL may wait there for the
// others, and the destructor waits for it as long as for a call, at most 10 s.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/device/device.h>

namespace cohort::nccl {

/// Members for the GPUs `devices` of this process. `hosts` are their communicators on the CPU, one per device
/// and with the same members; they are used until this returns, and give the ranks and the options.
/// Collective over all members.
/// @throws Unavailable on all members alike when NCCL cannot serve them, with the reason: it is missing or
/// too old somewhere, versions differ, GPUs are shared, or it fails to connect them. `hosts` remain usable
/// then.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_communicators(
    std::span<const std::unique_ptr<Communicator>> hosts, std::span<const Device> devices);

}  // namespace cohort::nccl
