// What the collectives of a group really cost, for packing tensors. Communicators of GPUs measure it by
// themselves when it is first needed (Communicator::cost); for CPUs a program can:
//
//   GradientBuckets buckets(communicator, gradients, {.cost = measured_cost(communicator)});
//
// Packs that follow a measurement may differ from run to run, and with them the last bits of sums whose order
// depends on the place in a call, as over several nodes and with NCCL.
#pragma once

#include <cohort/collective/packing.h>

namespace cohort {

class Communicator;

/// From some all-reduces and copies of tensors on `communicator.device()`: the slowest member decides, in
/// powers of two, so that noise seldom changes a pack. The same on all members. Collective: some thirty
/// all-reduces, which take some 10 ms, and on slow networks as long as 1 MiB takes there.
/// @throws what the collectives throw; Unavailable when memory is short.
[[nodiscard]] CommunicationCost measured_cost(Communicator& communicator);

}  // namespace cohort
