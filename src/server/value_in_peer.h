// A value that a task of this node has sent by saying where it lies in its memory. It stays there until the
// task has the answer. One thread, while the message is handled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cohort/device/tensor.h>
#include <cohort/remote/endpoint.h>
#include <cohort/server/detail/codec.h>

#include "server/sender_heap.h"

namespace cohort::server {

/// The memory of the task cannot be read, or the task does not wait any more: it must send the value itself.
struct OutOfReach {};

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
