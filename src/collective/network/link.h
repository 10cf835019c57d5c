// One member's part in a communicator over several nodes: what the node's engine calls
// the outside. A collective begins on the node, where members announce what they call;
// the leaders then hold a roll call; small calls end with that, and others go on with an
// algorithm of two levels.
#pragma once

#include <memory>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/collective/transport.h>

#include "../node/outside.h"
#include "../node/seat.h"
#include "inquest.h"
#include "remote_messages.h"
#include "roll_call.h"
#include "site.h"

namespace cohort::network {

class Link final : public node::Outside {
 public:
  Link(node::Seat& seat, std::unique_ptr<Transport> transport, Topology topology,
       const NetworkConstants& constants);

  [[nodiscard]] node::Steps carry_out(const CollectiveCall& call) override;
  [[nodiscard]] node::Steps send(const CollectiveCall& call) override { return messages_.send(call); }
  [[nodiscard]] node::Steps receive(const CollectiveCall& call) override { return messages_.receive(call); }
  void withdraw(const CollectiveCall& call) override { messages_.withdraw(call); }
  [[nodiscard]] std::optional<Error> look_around(const CollectiveCall& call,
                                                 const node::Waiting& waiting) override;
  void tell(const Error& failure) override { inquest_.report(failure); }
  [[nodiscard]] std::shared_ptr<node::Outside> split(std::span<const int> ranks, node::Seat& seat) override;
  [[nodiscard]] bool any_thread_may_drive() const noexcept override { return any_thread_; }

 private:
  [[nodiscard]] node::Steps agree(const CollectiveCall& call);
  [[nodiscard]] node::Steps all_reduce_while_agreeing(const CollectiveCall& call);
  [[nodiscard]] node::Steps learn_disagreement(const CollectiveCall& call);
  [[nodiscard]] node::Steps hold_roll_call(const CollectiveCall& call);
  [[nodiscard]] node::Steps carry_out_large(const CollectiveCall& call);

  void contribute(const CollectiveCall& call, bool line_is_free);
  void put_contributions(std::byte* to) const;
  void publish_contributions();
  void collect_result(const CollectiveCall& call);
  [[nodiscard]] const std::byte* contribution_of(int seat) const noexcept;

  node::Seat& seat_;
  Topology topology_;
  NetworkConstants constants_;
  bool any_thread_;
  Wire wire_;
  Inquest inquest_;
  RemoteMessages messages_;
  Site site_;
  std::vector<int> leaders_;
  RollCall roll_call_;

  // of the open collective
  ReductionKernel kernel_ = nullptr;
  std::size_t riding_bytes_ = 0;  ///< of each member's contribution; 0 if it does not ride along
  bool in_line_ = false;          ///< it lies beside the announcement, and not in a slot
  std::uint64_t slot_ = 0;
  std::vector<const std::byte*> cells_;  ///< all contributions, by rank
};

}  // namespace cohort::network
