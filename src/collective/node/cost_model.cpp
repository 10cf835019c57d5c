#include "cost_model.h"

namespace cohort::node {

double built_in_seconds(const CallShape& call, const CostConstants& constants) {
  const double waits = 2 * constants.latency_seconds;
  const auto bytes = static_cast<double>(call.bytes);
  switch (call.kind) {
    case CollectiveKind::kAllReduce: return waits + 2 * bytes * constants.seconds_per_byte;
    // A buffer that has all members' blocks is read or written by all of them at once.
    case CollectiveKind::kAllGather: return waits + bytes * call.members * constants.seconds_per_byte;
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kSplit:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  return waits + bytes * constants.seconds_per_byte;
}

}  // namespace cohort::node
