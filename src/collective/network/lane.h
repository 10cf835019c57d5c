// How members of different nodes reach each other: a Transfer is one message, a Wire a member's range of
// tags, and a lane one member of every node, those with the same local rank, by node. The leaders are lane 0.
// The algorithms of this folder are written against a Lane and know nothing else of the network: they number
// the lane's members from 0 to size - 1, and each of them is a Task, so that many go side by side.
//
// Cost formulas use alpha, the seconds that a message takes however short it is; beta, the
// seconds per byte on the network; gamma, the seconds per byte reduced; p members; n bytes.
//
// The words are explained in docs/collectives.md.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <cohort/collective/reduce_op.h>
#include <cohort/collective/task.h>

#include "collective/task/scratch_pool.h"
#include "transport.h"

namespace cohort::network {

/// A transfer in flight, or none. Dropping one that is pending leaves it to the transport.
class Transfer {
 public:
  Transfer() = default;
  /// `done()` is false until `*permitted` is true; null: no such condition.
  Transfer(Transport& transport, Transport::Ticket ticket, const bool* permitted = nullptr)
      : transport_(&transport), ticket_(ticket), permitted_(permitted) {}
  Transfer(Transfer&& other) noexcept
      : transport_(std::exchange(other.transport_, nullptr)),
        ticket_(other.ticket_),
        permitted_(other.permitted_),
        bytes_(other.bytes_) {}
  Transfer& operator=(Transfer&& other) noexcept {
    transport_ = std::exchange(other.transport_, nullptr);
    ticket_ = other.ticket_;
    permitted_ = other.permitted_;
    bytes_ = other.bytes_;
    return *this;
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() = default;

  [[nodiscard]] bool done() {
    if (transport_ == nullptr) return true;
    if (permitted_ != nullptr && !*permitted_) return false;
    const std::optional<std::size_t> bytes = transport_->poll(ticket_);
    if (!bytes) return false;
    bytes_ = *bytes;
    transport_ = nullptr;
    return true;
  }

  /// The bytes that were moved, once it is done.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Takes a receive back. False if a message has arrived for it: then it goes on.
  [[nodiscard]] bool cancel() {
    if (transport_ == nullptr || !transport_->cancel(ticket_)) return false;
    transport_ = nullptr;
    return true;
  }

 private:
  Transport* transport_ = nullptr;
  Transport::Ticket ticket_ = 0;
  const bool* permitted_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A member's range of tags on a transport, which several wires may share. It gives out transfers, and
/// scratch memory, which is kept beyond a failure since the transport may still read and write it.
class Wire {
 public:
  /// The transport's tags from `first_tag` on are this wire's alone.
  explicit Wire(Transport& transport, int first_tag = 0)
      : transport_(transport),
        scratch_pool_(transport.shared_scratch_pool() == nullptr ? own_scratch_pool_
                                                                 : *transport.shared_scratch_pool()),
        first_tag_(first_tag) {}

  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] Transport& transport() noexcept { return transport_; }
  [[nodiscard]] std::size_t message_bytes() const noexcept { return transport_.message_bytes(); }

  /// For 0 bytes no message is sent.
  [[nodiscard]] Transfer send(int to, int tag, const std::byte* data, std::size_t bytes);
  [[nodiscard]] Transfer receive(int from, int tag, std::byte* into, std::size_t bytes,
                                 const bool* permitted = nullptr);

  using Scratch = ScratchPool::Scratch;
  [[nodiscard]] Scratch scratch(std::size_t bytes) { return scratch_pool_.scratch(bytes); }
  [[nodiscard]] ScratchPool& scratch_pool() noexcept { return scratch_pool_; }

 private:
  ScratchPool own_scratch_pool_;
  Transport& transport_;
  ScratchPool& scratch_pool_;
  int first_tag_;
};

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

/// Moves data of any length from one member to another, in pieces of which a few are in flight at a time.
/// Cost alpha + n beta.
[[nodiscard]] Task<> stream_to(Wire& wire, int member, int tag, const std::byte* data, std::size_t bytes);
[[nodiscard]] Task<> stream_from(Wire& wire, int member, int tag, std::byte* into, std::size_t bytes);

/// The same along a lane.
[[nodiscard]] Task<> stream_to(Lane lane, int member, int tag, const std::byte* data, std::size_t bytes);
[[nodiscard]] Task<> stream_from(Lane lane, int member, int tag, std::byte* into, std::size_t bytes);

/// Both at once.
struct Leaving {
  int to;
  const std::byte* data;
  std::size_t bytes;
};
struct Arriving {
  int from;
  std::byte* into;
  std::size_t bytes;
};
[[nodiscard]] Task<> exchange(Lane lane, int tag, Leaving leaving, Arriving arriving);

}  // namespace cohort::network
