// One member's part in the collectives of a communicator over several nodes, for calls of
// one priority. A collective begins on the node, where members announce what they call;
// the leaders then hold a roll call; small calls end with that, and others go on with an
// algorithm of two levels. A leader hands the result of the roll call to its node by announcing
// the call a second time; contributions that piggybacked are then in the leader's next slot, by rank.
//
// The words are explained in docs/collectives.md.
#pragma once

#include <optional>
#include <vector>

#include <cohort/collective/algorithm.h>
#include <cohort/collective/communicator.h>

#include "collective/node/endpoint.h"
#include "failure_detector.h"
#include "roll_call.h"
#include "two_level.h"

namespace cohort::network {

/// The Peers of a registered algorithm over several nodes: messages go through the transport, even between
/// members of one node, with tags that no other collective has.
class NetworkPeers final : public Peers {
 public:
  explicit NetworkPeers(HierarchyContext& context) : context_(context) {}

  [[nodiscard]] int rank() const noexcept override { return context_.topology.rank(); }
  [[nodiscard]] int size() const noexcept override { return context_.topology.members(); }
  [[nodiscard]] int node_of(int member) const noexcept override { return context_.topology.node_of(member); }
  [[nodiscard]] Task<> send(int to, std::span<const std::byte> data, int tag) override;
  [[nodiscard]] Task<> receive(int from, std::span<std::byte> into, int tag) override;
  [[nodiscard]] std::shared_ptr<std::byte> scratch(std::size_t bytes) override {
    return context_.wire.scratch_pool().shared_scratch(bytes);
  }

 private:
  [[nodiscard]] int tag_of_turn(int other, int tag) const;

  HierarchyContext& context_;
};

class HierarchicalCollectives {
 public:
  /// Borrows all of it.
  HierarchicalCollectives(node::Endpoint& endpoint, Wire& wire, FailureDetector& failure_detector,
                          const Topology& topology);

  /// A whole collective, with its parts on this node. `call` must outlive it.
  [[nodiscard]] Task<> execute(const CollectiveCall& call);

  /// The same for a caller that waits, with the record of the call.
  void execute_now(const CollectiveCall& call);

  /// Of the collective that is open.
  [[nodiscard]] std::uint64_t number() const noexcept { return endpoint_.number(); }

  /// For a member that waits in `call`: the error of the whole group, if there is a reason to give up.
  [[nodiscard]] std::optional<Error> check_for_failure(const CollectiveCall& call,
                                                       const node::Waiting& waiting);

  /// The figures that choices go by, once a call has needed them.
  [[nodiscard]] std::vector<TuningFigure> tuning() const;

 private:
  void execute_alone_now(const CollectiveCall& call);
  void answer_roll_call(const CollectiveCall& call);
  void finish_on_roll_call(const CollectiveCall& call);
  /// Only for leaders.
  [[nodiscard]] Lane leaders() const;
  [[nodiscard]] bool is_piggybacked(const CollectiveCall& call) const;
  /// Of calls whose contributions do not piggyback.
  [[nodiscard]] Task<> execute_in_parts(const CollectiveCall& call);
  [[nodiscard]] Task<> exchange(const CollectiveCall& call);
  void require_unfailed_so_far();
  [[nodiscard]] Task<> execute_on_roll_call(const CollectiveCall& call);
  [[nodiscard]] Task<> agree_and_move(const CollectiveCall& call);
  [[nodiscard]] TransportCollectives* transport_collectives_for(const CollectiveCall& call) const;
  [[nodiscard]] Task<> execute_by(TransportCollectives& collectives, const CollectiveCall& call);
  [[nodiscard]] Task<> execute_registered(const CollectiveCall& call, Selection::Choice choice);
  [[nodiscard]] Selection::Choice registered_choice(const CollectiveCall& call) const;
  [[nodiscard]] ChoiceReason reason(CollectiveKind kind) const;
  [[nodiscard]] Task<> agree(const CollectiveCall& call);
  [[nodiscard]] Task<> agree_on_tuning(const CollectiveCall& call);
  /// A small collective of all members within agree_on_tuning, for the table and the probe's figures.
  [[nodiscard]] Task<> small_subcall(Priority priority, CollectiveKind kind, DType dtype, std::byte* data,
                                     std::size_t elements);
  /// Where no node has several members: sends the first parts of a long all-reduce during the roll call.
  [[nodiscard]] Task<> all_reduce_while_agreeing(const CollectiveCall& call);
  /// For a member other than the leader that finds a disagreement on its node: waits for the leader's error.
  [[nodiscard]] Task<> learn_disagreement(const CollectiveCall& call);
  /// For a leader: ends with the error that all leaders find. If the disagreement is `on_own_node`, it has
  /// kept the leader from the roll call, which is held first.
  [[nodiscard]] Task<> settle_disagreement(const CollectiveCall& call, bool on_own_node);
  [[nodiscard]] Task<> execute_large(const CollectiveCall& call);

  /// `line_is_free`: the payload of the line has no details, so a short contribution may lie there.
  void contribute(const CollectiveCall& call, bool line_is_free);
  void put_own_contribution(const CollectiveCall& call, std::byte* to) const;
  /// For a leader: those of its node, one after the other.
  void put_contributions(const CollectiveCall& call, std::byte* to) const;
  void publish_contributions();
  void collect_result(const CollectiveCall& call);
  [[nodiscard]] const std::byte* contribution_of(int local_rank) const noexcept;

  node::Endpoint& endpoint_;
  const Topology& topology_;
  std::optional<TuningTable> tuning_;  ///< the same on all members; none before the first large call
  CostConstants constants_ = kBuiltInConstants;
  FailureDetector& failure_detector_;
  HierarchyContext context_;
  NetworkPeers peers_;
  std::optional<RollCall> roll_call_;  ///< of a leader

  // of the open collective
  ReductionKernel kernel_ = nullptr;
  std::size_t piggyback_bytes_ = 0;  ///< of each member's contribution; 0 if it does not piggyback
  bool in_line_ = false;             ///< it lies beside the announcement, and not in a slot
  std::uint64_t slot_ = 0;
  bool by_transport_ = false;                    ///< the transport's collectives carry it
  std::vector<const std::byte*> contributions_;  ///< by rank; empty before the first small call
};

}  // namespace cohort::network
