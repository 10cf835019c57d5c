// A buffer of another member: read and written where it is, or, where this process cannot reach it, copied by
// the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cohort/collective/copy_bytes.h>

#include "device/node_memory.h"

namespace cohort::node {

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

struct MemberBuffers {
  RemoteBuffer input;
  RemoteBuffer output;
};

}  // namespace cohort::node
