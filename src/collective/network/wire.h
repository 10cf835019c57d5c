// A Wire is a member's range of tags on a transport. It gives out transfers that know whether they are
// pending, and scratch memory, which is kept beyond a failure since the transport may still read and write
// it. Several wires may share a transport.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "collective/network/transport.h"

#include "collective/task/scratch_pool.h"

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

}  // namespace cohort::network
