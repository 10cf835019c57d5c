// Collectives without copies: members read each other's inputs and write each other's
// outputs where they are. Memory of the heap and of this very process is addressed; what
// is private to another process is copied by the kernel, block by block.
//
// All-reduce is the reduce-scatter and the all-gather in one pass [two-shot]: each member
// reduces its own n/p elements of all inputs straight into all outputs. Cost per member
// n (p inputs read, p outputs written, n/p each), the least that all members together
// can do, and two waits. Blocks are pushed to where they belong rather than pulled: writes need
// not be waited for, reads from another core's cache do (all-gather of 1 MiB: 37 us
// against 63).
#pragma once

#include <cohort/collective/task.h>

#include "endpoint.h"

namespace cohort::node {

/// What this member announces about its buffers.
[[nodiscard]] BufferAddresses addresses_of(const CollectiveCall& call, const Position& position) noexcept;

/// What a member has announced of its buffers.
[[nodiscard]] BufferAddresses addresses_in(const Endpoint& endpoint, int member) noexcept;

/// How the members' buffers can be accessed. It follows from what all have announced, so it is the same on
/// all.
enum class BufferAccess {
  kAddressed,   ///< all of them directly
  kSingleCopy,  ///< some through the kernel
  kNone,        ///< some not at all
};
struct AnnouncedBuffers {
  BufferAccess access = BufferAccess::kNone;
  bool in_place = false;  ///< every member's output is its input
};
[[nodiscard]] AnnouncedBuffers announced_buffers(const Endpoint& endpoint) noexcept;

/// The collective itself, once all have announced where their buffers are.
Task<> exchange_directly(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel,
                         bool in_place);

}  // namespace cohort::node
