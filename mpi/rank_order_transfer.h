// The data phase of a reduction whose bits must not depend on the layout. MPI combines the
// members in an order of its own; so they exchange contributions, each combines its block of
// all of them from the first rank to the last, and the results are gathered.
//
// It starts two operations of MPI, one after the other. Since all members must start these in
// the same order, no other collective may start in between.
#pragma once

#include <memory>
#include <optional>

#include <cohort/collective/collective_call.h>

#include "transfer.h"

namespace cohort::mpi {

class RankOrderTransfer {
 public:
  /// `call` must outlive this.
  RankOrderTransfer(const Place& place, const Operators& operators, const CollectiveCall& call);

  /// True once the result is in place.
  [[nodiscard]] bool advance();

  [[nodiscard]] bool will_start_more() const noexcept { return !combined_; }

  /// MPI may still read and write the call's memory and this object's.
  [[nodiscard]] bool pending() const noexcept { return step_ && step_->pending(); }

 private:
  [[nodiscard]] bool is_scatter() const noexcept { return call_.kind == CollectiveKind::kReduceScatter; }
  [[nodiscard]] std::size_t bytes(std::size_t blocks) const noexcept {
    return blocks * block_elements_ * size_of(call_.dtype);
  }
  void exchange_contributions();
  void combine();
  void gather_results();

  const Place place_;
  const Operators& operators_;
  const CollectiveCall& call_;
  const std::size_t members_;
  const std::size_t block_elements_;  ///< the last block of an all-reduce may be shorter, and is filled up
  bool combined_ = false;
  CollectiveCall part_;  ///< what `step_` carries out
  std::optional<Transfer> step_;
  std::shared_ptr<const Buffer> input_;  ///< filled up
  std::shared_ptr<const Buffer> contributions_;
  std::shared_ptr<const Buffer> result_;  ///< of this member's block, then of all
};

}  // namespace cohort::mpi
