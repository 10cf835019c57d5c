// The Transport of one member of a simulated cluster.
#pragma once

#include "simulation/simulated_network.h"

namespace cohort::simulation {

class SimulatedTransport final : public Transport {
 public:
  /// `network` outlives it.
  SimulatedTransport(SimulatedNetwork& network, int rank) : network_(network), rank_(rank) {}

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    return network_.send(rank_, to, data);
  }
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> into) override {
    return network_.receive(rank_, from, into);
  }
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override {
    return network_.poll(rank_, ticket);
  }
  [[nodiscard]] bool cancel(Ticket ticket) override { return network_.cancel(rank_, ticket); }
  void send_control(int member, std::string_view text) override {
    network_.send_control(rank_, member, text);
  }
  [[nodiscard]] std::optional<ControlMessage> receive_control() override {
    return network_.receive_control(rank_);
  }
  [[nodiscard]] std::size_t message_bytes() const noexcept override { return network_.model().message_bytes; }

  /// None: groups are not simulated.
  [[nodiscard]] ContextIdSet free_context_ids() const override { return {}; }
  [[nodiscard]] std::unique_ptr<Transport> split(std::span<const int> /*members*/,
                                                 const ContextId& /*id*/) override {
    throw Unimplemented("groups of members of a simulated cluster are not simulated");
  }
  /// The network is not driven any more when members are destroyed.
  [[nodiscard]] bool ends_transfers() const noexcept override { return true; }
  /// The simulated members' data takes no more memory than they use at a time.
  [[nodiscard]] ScratchPool* shared_scratch_pool() noexcept override { return &network_.scratch_pool(); }
  /// Only the thread that simulates: no progress thread drives its members.
  [[nodiscard]] bool any_thread() const noexcept override { return false; }

 private:
  SimulatedNetwork& network_;
  int rank_;
};

}  // namespace cohort::simulation
