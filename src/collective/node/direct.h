// Collectives without copies: members read each other's inputs and write each other's outputs where they are.
// Memory of the heap and of this very process is addressed; what is private to another process is copied by
// the kernel, block by block.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/task.h>

#include "call_plan.h"
#include "control_block.h"
#include "device/node_memory.h"

namespace cohort::node {

class Endpoint;

// ---- the members' buffers

/// One member's buffer. Ranges of it are read or written in place, or copied by the kernel.
class RemoteBuffer {
 public:
  /// What `worker` has announced: an offset into its heap, or an address.
  RemoteBuffer(const NodeMemory& memory, int worker, std::uint64_t address, bool in_heap)
      : memory_(memory), worker_(worker), private_(address) {
    const bool own_process = memory_.is_this_process(worker_);
    if (in_heap) {
      data_ = memory_.address(worker_, address);
    } else if (own_process) {
      data_ =
          reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): came from a pointer
    }
  }

  [[nodiscard]] bool addressed() const noexcept { return data_ != nullptr; }

  /// Members that get no result have no output, and so on.
  [[nodiscard]] bool exists() const noexcept { return addressed() || private_ != 0; }

  /// The range where it is, or a copy of it in `scratch`.
  [[nodiscard]] const std::byte* see(std::size_t begin, std::size_t bytes, std::byte* scratch) const {
    if (addressed()) return data_ + begin;
    memory_.copy_from(worker_, remote() + begin, scratch, bytes);
    return scratch;
  }

  /// Where to write the range: the place itself or `scratch`, which `put` then copies there.
  [[nodiscard]] std::byte* target(std::size_t begin, std::byte* scratch) const noexcept {
    return addressed() ? data_ + begin : scratch;
  }

  void put(std::size_t begin, const std::byte* from, std::size_t bytes,
           CopyHint hint = CopyHint::kCached) const {
    if (!addressed()) {
      memory_.copy_to(worker_, remote() + begin, from, bytes);
    } else if (data_ + begin != from) {
      copy_bytes(data_ + begin, from, bytes, hint);
    }
  }

 private:
  [[nodiscard]] std::byte* remote() const noexcept {
    return reinterpret_cast<std::byte*>(private_);  // NOLINT(performance-no-int-to-ptr): of another process
  }
  const NodeMemory& memory_;
  int worker_;
  std::uint64_t private_;
  std::byte* data_ = nullptr;
};

/// Of a call.
struct MemberBuffers {
  RemoteBuffer input;
  RemoteBuffer output;
};

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

// ---- the collective itself, once all have announced where their buffers are

/// All-reduce is the reduce-scatter and the all-gather in one pass [two-shot]: each member reduces its own
/// n/p elements of all inputs straight into all outputs. Cost per member n (p inputs read, p outputs written,
/// n/p each), the least that all members together can do, and two waits. Blocks are pushed to where they
/// belong rather than pulled: writes need not be waited for, reads from another core's cache do (all-gather
/// of 1 MiB: 37 us against 63).
Task<> exchange_directly(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel,
                         bool in_place);

// ---- along the sockets

// All-reduce of long buffers on a machine with several sockets, when these can be reached where they are.
// What crosses between sockets is slow, so each block of a buffer crosses once on its way through the sockets
// and once on its way back: 2 (s - 1) n bytes for s sockets, where members that read from all others move p n
// / 2 and more.
//
// On each socket one member is responsible for a block. That of the first socket reduces what the members of
// its socket have; each next one goes on with what the one before it has; the last one has the result, which
// each takes to the members of its socket. Members are combined in the order of their ranks, as everywhere.

/// Whether a call that could go directly goes this way: all buffers can be reached, the members of each
/// socket have consecutive ranks, and a sum may be rounded at the end of each socket without changing the
/// result.
[[nodiscard]] bool goes_along_sockets(const Endpoint& endpoint, const CollectiveCall& call,
                                      BufferAccess access);

/// After all have announced where their buffers are.
Task<> reduce_along_sockets(Endpoint& endpoint, const CollectiveCall& call);

}  // namespace cohort::node
