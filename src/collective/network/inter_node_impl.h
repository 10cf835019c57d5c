// The implementation of node::InterNode for one member. Each priority has hierarchical collectives and tags
// of its own, so that urgent calls overtake normal ones on the network; control messages and messages are
// shared.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "collective/network/transport.h"

#include "../node/inter_node.h"
#include "collective/node/node_communicator.h"
#include "failure_detector.h"
#include "hierarchical_collectives.h"
#include "remote_messages.h"

namespace cohort::network {

class InterNodeImpl final : public node::InterNode {
 public:
  /// `generation` is that of its group.
  InterNodeImpl(node::NodeCommunicatorImpl& member, std::unique_ptr<Transport> transport, Topology topology,
                std::uint64_t generation = 0);

  [[nodiscard]] Task<> execute(const CollectiveCall& call) override {
    return collectives(call.priority).execute(call);
  }
  void execute_now(const CollectiveCall& call) override { collectives(call.priority).execute_now(call); }
  [[nodiscard]] Task<> send(const CollectiveCall& call) override { return messages_.send(call); }
  [[nodiscard]] Task<> receive(const CollectiveCall& call) override { return messages_.receive(call); }
  [[nodiscard]] node::Withdrawal withdraw(const CollectiveCall& call) override {
    return messages_.withdraw(call);
  }
  [[nodiscard]] std::optional<Error> check_for_failure(const CollectiveCall& call,
                                                       const node::Waiting& waiting) override;
  [[nodiscard]] std::optional<Error> poll_failure() override {
    return failure_detector_.poll_failure(member_.is_in_collective(), FailureDetector::kNoCall);
  }
  void tell(const Error& failure) override { failure_detector_.report(failure); }
  void tell_of_leaving(const Error& reason, std::uint64_t collectives) override {
    failure_detector_.report_leaving(reason, collectives);
  }
  [[nodiscard]] std::vector<TuningFigure> tuning() const override { return collectives_.front().tuning(); }
  [[nodiscard]] ContextIdSet free_context_ids() const override { return transport_->free_context_ids(); }
  [[nodiscard]] std::shared_ptr<node::InterNode> split(std::span<const int> ranks,
                                                       const ContextIdSet& free_ids,
                                                       node::NodeCommunicatorImpl& member) override;
  [[nodiscard]] bool ends_transfers() const noexcept override { return transport_->ends_transfers(); }
  [[nodiscard]] bool any_thread_may_drive() const noexcept override { return any_thread_; }

 private:
  [[nodiscard]] HierarchicalCollectives& collectives(Priority priority) noexcept {
    return collectives_[static_cast<std::size_t>(priority)];
  }

  const node::NodeCommunicatorImpl& member_;
  Topology topology_;
  bool any_thread_;
  std::array<Wire, kPriorities> wires_;  ///< outlive the transport, which may use their memory to its end
  std::unique_ptr<Transport> transport_;
  FailureDetector failure_detector_;
  RemoteMessages messages_;
  std::array<HierarchicalCollectives, kPriorities> collectives_;
};

}  // namespace cohort::network
