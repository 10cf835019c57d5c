// One member's part in the collectives of a communicator over several nodes, for calls of
// one priority. A collective begins on the node, where members announce what they call;
// the leaders then hold a roll call; small calls end with that, and others go on with an
// algorithm of two levels.
#pragma once

#include <optional>
#include <vector>

#include <cohort/collective/communicator.h>

#include "../node/seat.h"
#include "inquest.h"
#include "network_peers.h"
#include "roll_call.h"
#include "site.h"

namespace cohort::network {

class Link {
 public:
  /// Borrows all of it.
  Link(node::Seat& seat, Wire& wire, Inquest& inquest, const Topology& topology);

  /// A whole collective, with its parts on this node. `call` must outlive it.
  [[nodiscard]] Steps carry_out(const CollectiveCall& call);

  /// For who waits in `call`: an error of the whole group, if there is a reason not to wait any longer.
  [[nodiscard]] std::optional<Error> look_around(const CollectiveCall& call, const node::Waiting& waiting);

  /// The figures that choices go by, once a call has needed them.
  [[nodiscard]] std::vector<TuningFigure> tuning() const;

 private:
  [[nodiscard]] bool rides(const CollectiveCall& call) const;
  [[nodiscard]] Steps exchange(const CollectiveCall& call);
  [[nodiscard]] Steps ride(const CollectiveCall& call);
  [[nodiscard]] Steps agree_and_move(const CollectiveCall& call);
  [[nodiscard]] LibraryCollectives* library_for(const CollectiveCall& call) const;
  [[nodiscard]] Steps carry_out_by(LibraryCollectives& library, const CollectiveCall& call);
  [[nodiscard]] Steps carry_out_registered(const CollectiveCall& call, Selection::Choice choice);
  [[nodiscard]] Selection::Choice registered_choice(const CollectiveCall& call) const;
  [[nodiscard]] ChoiceReason reason(CollectiveKind kind) const;
  [[nodiscard]] Steps agree(const CollectiveCall& call);
  [[nodiscard]] Steps agree_on_tuning(const CollectiveCall& call);
  [[nodiscard]] Steps small_part(CollectiveKind kind, DType dtype, std::byte* data, std::size_t elements);
  [[nodiscard]] Steps all_reduce_while_agreeing(const CollectiveCall& call);
  [[nodiscard]] Steps learn_disagreement(const CollectiveCall& call);
  [[nodiscard]] Steps hold_roll_call(const CollectiveCall& call);
  [[nodiscard]] Steps carry_out_large(const CollectiveCall& call);

  void contribute(const CollectiveCall& call, bool line_is_free);
  void put_contributions(std::byte* to) const;
  void publish_contributions();
  void collect_result(const CollectiveCall& call);
  [[nodiscard]] const std::byte* contribution_of(int seat) const noexcept;

  node::Seat& seat_;
  const Topology& topology_;
  std::optional<TuningTable> tuning_;  ///< the same on all members; none before the first large call
  CostConstants constants_ = kBuiltInConstants;
  Inquest& inquest_;
  Site site_;
  NetworkPeers peers_;
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
