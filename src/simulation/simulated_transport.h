// The Transport of one member of a simulated cluster, or of a group of its members. Groups live as long as
// the cluster, so their context ids are not given back.
#pragma once

#include <memory>
#include <vector>

#include "simulation/simulated_network.h"

namespace cohort::simulation {

class SimulatedTransport final : public Transport {
 public:
  /// `network` outlives it.
  SimulatedTransport(SimulatedNetwork& network, int rank)
      : network_(network), rank_(rank), context_ids_(std::make_shared<ContextIdPool>(ContextIdSet::kIds)) {}

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    return network_.send(rank_, group_, in_cluster(to), data);
  }
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> into) override {
    return network_.receive(rank_, group_, in_cluster(from), into);
  }
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override {
    return network_.poll(rank_, ticket);
  }
  [[nodiscard]] bool cancel(Ticket ticket) override { return network_.cancel(rank_, ticket); }
  void send_control(int member, std::string_view text) override {
    network_.send_control(rank_, group_, rank_in_cluster(member), text);
  }
  [[nodiscard]] std::optional<ControlMessage> receive_control() override;
  [[nodiscard]] std::size_t message_bytes() const noexcept override { return network_.model().message_bytes; }

  [[nodiscard]] ContextIdSet free_context_ids() const override { return context_ids_->free_ids(); }
  [[nodiscard]] std::unique_ptr<Transport> split(std::span<const int> members, const ContextId& id) override;
  /// The network is not driven any more when members are destroyed.
  [[nodiscard]] bool ends_transfers() const noexcept override { return true; }
  /// The simulated members' data takes no more memory than they use at a time.
  [[nodiscard]] ScratchPool* shared_scratch_pool() noexcept override { return &network_.scratch_pool(); }
  /// Only the thread that simulates: no progress thread drives its members.
  [[nodiscard]] bool any_thread() const noexcept override { return false; }

 private:
  [[nodiscard]] int rank_in_cluster(int member) const noexcept {
    return cluster_ranks_.empty() ? member : cluster_ranks_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] Address in_cluster(const Address& address) const noexcept {
    return {address.channel, rank_in_cluster(address.member), address.tag};
  }

  SimulatedNetwork& network_;
  int rank_;  ///< in the cluster
  std::shared_ptr<ContextIdPool> context_ids_;
  int group_ = 0;
  std::vector<int> cluster_ranks_;  ///< of the group's members; empty where they are all members
};

}  // namespace cohort::simulation
