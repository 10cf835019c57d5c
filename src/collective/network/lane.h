// A lane: one member of every node, those with the same local rank, by node. The leaders are lane 0. The
// algorithms of this folder are written against it and know nothing else of the network: they number the
// lane's members from 0 to size - 1, and each of them is a Task, so that many go side by side.
//
// Cost formulas use alpha, the seconds that a message takes however short it is; beta, the
// seconds per byte on the network; gamma, the seconds per byte reduced; p members; n bytes.
//
// The words are explained in docs/collectives.md.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/reduce_op.h>

#include "wire.h"

namespace cohort::network {

class Lane {
 public:
  /// `ranks` by node, borrowed; this member is `ranks[index]`. No receive is done until `*permitted` is
  /// true; null: no such condition.
  Lane(Wire& wire, std::span<const int> ranks, int index, const bool* permitted = nullptr)
      : wire_(&wire), ranks_(ranks), index_(index), permitted_(permitted) {}

  [[nodiscard]] int index() const noexcept { return index_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }

  /// The member `steps` further round the circle.
  [[nodiscard]] int neighbour(int steps) const noexcept {
    const int wrapped = (index_ + steps) % size();
    return wrapped < 0 ? wrapped + size() : wrapped;
  }

  [[nodiscard]] Transfer send(int to, int tag, const std::byte* data, std::size_t bytes) const {
    return wire_->send(ranks_[static_cast<std::size_t>(to)], tag, data, bytes);
  }
  [[nodiscard]] Transfer receive(int from, int tag, std::byte* into, std::size_t bytes) const {
    return wire_->receive(ranks_[static_cast<std::size_t>(from)], tag, into, bytes, permitted_);
  }
  /// The longest message that the transport wants.
  [[nodiscard]] std::size_t message_bytes() const noexcept { return wire_->message_bytes(); }
  [[nodiscard]] Wire::Scratch scratch(std::size_t bytes) const { return wire_->scratch(bytes); }

 private:
  Wire* wire_;
  std::span<const int> ranks_;
  int index_;
  const bool* permitted_;
};

/// A part of a lane's data: this member's contribution and where its result goes, which may be the same
/// place. Parts that are in flight together have different tags.
struct Part {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t elements = 0;
  int tag = 0;
};

/// How elements are combined. MEAN is only summed here; the caller, which knows the number of members,
/// divides.
struct Arithmetic {
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;

  [[nodiscard]] std::size_t bytes(std::size_t elements) const noexcept { return elements * size_of(dtype); }

  /// output = first op second, in this order. 16-bit types are rounded here, once per pass.
  void combine(const std::byte* first, const std::byte* second, std::byte* output,
               std::size_t elements) const;
};

/// A part cut into nearly equal blocks, one per member of a lane.
class EvenBlocks {
 public:
  EvenBlocks(std::size_t elements, int count)
      : elements_(elements), count_(static_cast<std::size_t>(count)) {}

  [[nodiscard]] std::size_t begin(int block) const noexcept {
    return elements_ * static_cast<std::size_t>(block) / count_;
  }
  [[nodiscard]] std::size_t elements(int first, int last) const noexcept {
    return begin(last) - begin(first);
  }
  [[nodiscard]] std::size_t elements(int block) const noexcept { return elements(block, block + 1); }
  [[nodiscard]] std::size_t largest() const noexcept { return (elements_ + count_ - 1) / count_; }

 private:
  std::size_t elements_;
  std::size_t count_;
};

}  // namespace cohort::network
