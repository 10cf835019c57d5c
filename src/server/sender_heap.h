// The node heap of a task of this node, as a server sees it: tensors that the task writes to variables are
// read where they lie. Read only. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include <cohort/remote/endpoint.h>

#include "server/aligned_mapping.h"

namespace cohort::server {

class SenderHeap {
 public:
  /// Of a task that offers its heap's file; -1, or a file that cannot be mapped: it has none.
  explicit SenderHeap(int descriptor);

  /// Null for bytes that do not lie in it.
  [[nodiscard]] const std::byte* at(std::uint64_t offset, std::size_t bytes) const noexcept;

 private:
  AlignedMapping mapping_;
};

/// Who has sent a message, and its heap.
struct Sender {
  remote::Peer& peer;
  const SenderHeap& heap;
};

class SenderHeaps {
 public:
  [[nodiscard]] Sender of(remote::Peer& peer) {
    return {peer, heaps_.try_emplace(&peer, peer.offered_descriptor()).first->second};
  }
  void forget(const remote::Peer& peer) { heaps_.erase(&peer); }

 private:
  std::map<const remote::Peer*, SenderHeap> heaps_;
};

}  // namespace cohort::server
