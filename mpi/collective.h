// A collective in flight: first all members agree on the call, then the data moves,
// unless it was small enough to travel with the agreement.
#pragma once

#include <optional>

#include "agreement.h"
#include "operation.h"
#include "rank_order_transfer.h"
#include "transfer.h"

namespace cohort::mpi {

class Collective final : public Operation {
 public:
  Collective(const CollectiveCall& call, std::uint64_t sequence, Deadline deadline)
      : Operation(call, sequence, deadline) {}

  /// Sends this member's signature; for members other than 0.
  void submit(Agreement& agreement, const Place& place) const;

  /// For the call in front: true once it can be settled, since all signatures, or the consent, are here.
  [[nodiscard]] bool can_be_settled(Agreement& agreement, const Place& place);

  /// Settles the agreement, and starts the transfer. As this happens in the order of the calls,
  /// transfers start in the same order on all members.
  /// @throws InvalidArgument when the members' calls differ.
  void settle(Agreement& agreement, const Place& place, const Operators& operators,
              std::span<const MemberInfo> members);
  [[nodiscard]] bool agreed() const noexcept { return agreed_; }

  /// Whether its transfer will start another operation of MPI, which must come before those of later calls.
  [[nodiscard]] bool will_start_more() const noexcept {
    return !finished() && ordered_transfer_ && ordered_transfer_->will_start_more();
  }

  /// Moves the transfer on; true when the collective has ended.
  [[nodiscard]] bool advance();

  [[nodiscard]] bool waits_for_arrival() const noexcept override { return !agreed_; }
  [[nodiscard]] bool pending_in_mpi() const noexcept override {
    return (transfer_ && transfer_->pending()) || (ordered_transfer_ && ordered_transfer_->pending());
  }

 private:
  [[nodiscard]] CallSignature own_signature() const { return signature(call(), sequence()); }
  void require_agreement(std::span<const CallSignature> by_member, std::span<const MemberInfo> members) const;

  bool agreed_ = false;
  std::span<const std::byte> eager_result_;  ///< in the agreement's memory, until it is settled
  std::optional<Transfer> transfer_;         ///< one of the two, once the call is agreed on
  std::optional<RankOrderTransfer> ordered_transfer_;
};

}  // namespace cohort::mpi
