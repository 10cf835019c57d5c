// The base class of communicators. A class that derives from it executes calls. Communicator, the interface
// for programs, has checked their arguments by then, and filled in the options of open scopes.
//
// Communicators that work through another one find functions here that hand calls on to it, and that have its
// members agree on a call without making it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <cohort/collective/communicator.h>

#include "collective/call/split_exchange.h"

namespace cohort {

class CommunicatorBase : public Communicator {
 public:
  /// Makes a call that another communicator with the same members has checked, with its options filled in.
  static void run_checked(Communicator& communicator, const CollectiveCall& call) {
    communicator.execute(call);
  }
  static Work start_checked(Communicator& communicator, const CollectiveCall& call) {
    return communicator.begin(call);
  }

  /// A barrier of `communicator` in which the members agree on `call`, whose data is moved by something else.
  /// Its errors name `call`.
  static void agree(Communicator& communicator, const CollectiveCall& call);

 protected:
  CommunicatorBase(int rank, std::vector<MemberInfo> members, const CommunicationOptions& options = {})
      : Communicator(rank, std::move(members), options) {}

  /// The exchange with which `split` begins: the members of this member's group, in their new order; none
  /// where it takes part in no group.
  [[nodiscard]] std::vector<SplitMember> exchange_split(std::optional<int> color, int key,
                                                        const SplitContribution& contribution);
  /// The same in steps.
  void run_exchange(const SplitExchange& exchange) { run(exchange.call()); }
  [[nodiscard]] Work start_exchange(const SplitExchange& exchange) { return start(exchange.call()); }

  /// Whether calls may have their tensors on devices of this kind.
  [[nodiscard]] bool takes(DeviceKind kind) const noexcept override { return kind == DeviceKind::kCpu; }

  /// Starts a call. `call` borrows from the caller only until this returns, so implementations keep an
  /// `OwnedCall`.
  Work begin(const CollectiveCall& call) override = 0;

  /// The blocking form; an implementation may do better than starting and waiting.
  void execute(const CollectiveCall& call) override { begin(call).wait(); }
};

}  // namespace cohort
