// A Transport over TCP: what a member of a communicator, or of a group that was split off it, sends over the
// connections that they share.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cluster/descriptor_exchange.h"
#include "collective/network/transport.h"
#include "tcp_network.h"

namespace cohort::rendezvous {

struct TcpGroupOptions {
  std::vector<WorkerInfo> workers = {};  ///< by rank, with their nodes
  int rank = 0;                          ///< of this process among them
  int members = 1;                       ///< of each worker
  std::string secret = {};               ///< of the communicator
  BlobExchange exchange = {};
  std::function<const Error*()> fault = {};  ///< the loss of a worker, or null
  std::chrono::duration<double> timeout{};   ///< for the connections; for ever when zero
  std::shared_ptr<LostConnection> lost = {};
};

/// The networks of this worker's members, by rank. Collective over the workers. With up to 64 members, all
/// those on different nodes are connected when it returns.
/// @throws DeadlineExceeded naming a worker that could not be reached, and what came of each of its addresses;
/// Unavailable when a worker is lost.
[[nodiscard]] std::vector<std::shared_ptr<TcpNetwork>> connect_members(const TcpGroupOptions& options);

class TcpTransport final : public Transport {
 public:
  /// Of all members that `network` knows.
  explicit TcpTransport(std::shared_ptr<TcpNetwork> network);
  ~TcpTransport() override;

  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override;
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> into) override;
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override { return network_->poll(ticket); }
  [[nodiscard]] bool cancel(Ticket ticket) override { return network_->cancel(ticket); }
  void send_control(int member, std::string_view text) override;
  [[nodiscard]] std::optional<ControlMessage> receive_control() override;
  [[nodiscard]] std::size_t message_bytes() const noexcept override { return kMessageBytes; }
  [[nodiscard]] ContextIdSet free_context_ids() const override { return context_ids_->free_ids(); }
  [[nodiscard]] std::unique_ptr<Transport> split(std::span<const int> members, const ContextId& id) override;
  [[nodiscard]] bool ends_transfers() const noexcept override { return true; }
  [[nodiscard]] bool any_thread() const noexcept override { return true; }

 private:
  static constexpr std::size_t kMessageBytes = std::size_t{256} << 10;

  /// Of a group.
  TcpTransport(const TcpTransport& parent, std::span<const int> members, const ContextId& id);

  [[nodiscard]] Label label(std::uint16_t channel, int tag) const noexcept {
    return {id_.generation, static_cast<std::uint32_t>(tag), static_cast<std::uint16_t>(id_.number), channel};
  }
  /// The rank of a member of this group in the communicator from which the group descends.
  [[nodiscard]] int ancestor_rank_of(int member) const noexcept {
    return ancestor_ranks_.empty() ? member : ancestor_ranks_[static_cast<std::size_t>(member)];
  }

  std::shared_ptr<TcpNetwork> network_;
  std::shared_ptr<ContextIdPool> context_ids_;
  ContextId id_;
  std::vector<int> ancestor_ranks_;  ///< of the group's members; empty where they are all members
};

}  // namespace cohort::rendezvous
