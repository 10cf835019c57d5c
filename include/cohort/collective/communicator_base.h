// For those who write a communicator: a class that derives from CommunicatorBase is a Communicator.
// It starts calls whose arguments have been checked and completed by the options of open scopes;
// all else that users see of a call is the Communicator's.
//
// Here is also what communicators need that work through another one: they hand calls on to it, or have
// its members agree on a call without making it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/collective/context_ids.h>

namespace cohort {

/// What a member tells the others in a split.
struct SplitContribution {
  std::array<std::uint64_t, 2> control_block{};  ///< where it lies on the member's node; twice 0 for nowhere
  ContextIdSet context_ids;                      ///< that are free for a group over several nodes
};

/// A member of a group that is being split off.
struct SplitMember {
  int rank = 0;  ///< in the communicator that is split
  SplitContribution contribution;
};

class CommunicatorBase : public Communicator {
 public:
  /// Makes a call that another communicator with the same members has checked, and completed by its options.
  static void run_checked(Communicator& communicator, const CollectiveCall& call) {
    communicator.execute(call);
  }
  static Work start_checked(Communicator& communicator, const CollectiveCall& call) {
    return communicator.begin(call);
  }

  /// Returns once every member of `communicator` has come to a call that is like `call`, whose data takes
  /// another way. As a barrier in all else; its errors speak of `call`.
  static void agree(Communicator& communicator, const CollectiveCall& call);

 protected:
  CommunicatorBase(int rank, std::vector<MemberInfo> members, const CommunicationOptions& options = {})
      : Communicator(rank, std::move(members), options) {}

  /// The exchange with which `split` begins: the members of this member's group, in their new order; none
  /// where it takes part in no group.
  [[nodiscard]] std::vector<SplitMember> exchange_split(std::optional<int> color, int key,
                                                        const SplitContribution& contribution);

  /// Whether calls may have their tensors on devices of this kind.
  [[nodiscard]] bool takes(DeviceKind kind) const noexcept override { return kind == DeviceKind::kCpu; }

  /// Starts a call. What it borrows is the caller's again when this returns, so implementations keep an
  /// `OwnedCall`.
  Work begin(const CollectiveCall& call) override = 0;

  /// The blocking form; implementations may have a shorter way than starting and waiting.
  void execute(const CollectiveCall& call) override { begin(call).wait(); }
};

}  // namespace cohort
