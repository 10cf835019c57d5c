// PyTorch's allocator for tensors on CPUs, replaced by one that takes large tensors from the node heap, which
// the other ranks of the host read and write in place. Small ones stay where PyTorch has them.
#pragma once

namespace cohort::pytorch {

/// From now on, until it is called with false. In forked children, which do not share the heap, new tensors
/// come from PyTorch's own allocator, and those of the heap are not there at all. Any thread.
void use_heap(bool on);

}  // namespace cohort::pytorch
