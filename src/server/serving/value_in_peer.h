// Values that a task of this node has in its memory, and that a server reads where they lie. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include <cohort/device/tensor.h>
#include <cohort/remote/endpoint.h>
#include <cohort/server/detail/codec.h>

#include "server/store/store_mapping.h"

namespace cohort::server {

/// The node heap of a task of this node, as a server sees it. Read only.
class SenderHeap {
 public:
  /// Of a task that offers its heap's file; -1, or a file that cannot be mapped: it has none.
  explicit SenderHeap(int descriptor);

  /// Null for bytes that do not lie in it.
  [[nodiscard]] const std::byte* at(std::uint64_t offset, std::size_t bytes) const noexcept;

 private:
  MappedRange mapping_;
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

/// The memory of the task cannot be read, or the task does not wait any more: it must send the value itself.
struct OutOfReach {};

/// A value that a task of this node has sent by saying where it lies in its memory. It stays there until the
/// task has the answer: this object is for the time in which the message is handled.
class ValueInPeer {
 public:
  /// Whether reading it there is less work than sending it.
  [[nodiscard]] static bool is_worth_it(const Tensor& value) noexcept;

  /// By the task that has the value.
  static void encode(Encoder& encoder, const Tensor& value);

  ValueInPeer(const Sender& sender, Decoder& decoder);

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }

  /// Copies the bytes from `at` on. @throws OutOfReach.
  void read(std::size_t at, std::span<std::byte> to) const;
  [[nodiscard]] Tensor read() const;

 private:
  remote::Peer* peer_;
  const SenderHeap* heap_;
  DType dtype_;
  Shape shape_;
  std::uint64_t address_;
  std::uint64_t offset_;  ///< in the task's heap
};

}  // namespace cohort::server
