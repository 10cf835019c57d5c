// The memory of one GPU in the hands of another. CUDA's pools are closed to other GPUs at first: copies
// between two GPUs then go through the host, and a kernel that uses another GPU's memory, as NCCL's do within
// a process, fails.
#pragma once

#include <cohort/device/device.h>

namespace cohort::cuda {

/// From now on `peer` may use the memory of `owner`'s pool in place, if it reaches that GPU at all. Costs
/// memory on both, so it is done only for GPUs that work together, once. Any thread may call it.
void open_memory(Device owner, Device peer);

}  // namespace cohort::cuda
