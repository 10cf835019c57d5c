#include "collective/communicator_base.h"

#include <cohort/base/fingerprint.h>

namespace cohort {
namespace {

/// The call by which members agree on one whose data is moved by something else.
CollectiveCall agreement_barrier(const CollectiveCall& call) {
  const CallSignature exact = signature(call, 0);
  CollectiveCall barrier;
  barrier.kind = CollectiveKind::kBarrier;
  barrier.layout =
      Fingerprint()
          .add(exact.elements)
          .add(exact.layout)
          .add(static_cast<std::uint64_t>(exact.kind) << 32 | static_cast<std::uint64_t>(exact.dtype) << 16 |
               exact.op)
          .add(static_cast<std::uint64_t>(exact.captured) << 40 |
               static_cast<std::uint64_t>(exact.device) << 32 | static_cast<std::uint32_t>(exact.root))
          .value();
  barrier.priority = call.priority;
  barrier.timeout_seconds = call.timeout_seconds;
  barrier.stands_for = &call;
  return barrier;
}

}  // namespace

void CommunicatorBase::agree(Communicator& communicator, const CollectiveCall& call) {
  communicator.execute(agreement_barrier(call));
}

std::vector<SplitMember> CommunicatorBase::exchange_split(std::optional<int> color, int key,
                                                          const SplitContribution& contribution) {
  const SplitExchange exchange(size(), color, key, contribution);
  run_exchange(exchange);
  return exchange.members();
}

}  // namespace cohort
