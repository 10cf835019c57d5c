// Jobs in which something goes wrong, made from a seed: a cluster, a sequence of calls, and a fault at some
// time. For tests that the library neither hangs nor gives wrong results, and names who is guilty.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cohort/collective/collective_kind.h>

#include "simulation/simulated_cluster.h"

namespace cohort::simulation {

struct FaultSchedule {
  struct Call {
    CollectiveKind kind = CollectiveKind::kBarrier;
    std::int64_t elements = 0;  ///< of a block, float32
  };

  SimulatedClusterOptions cluster;
  std::vector<Call> calls;

  /// In words, for messages.
  [[nodiscard]] std::string describe() const;
};

/// The same for the same seed.
[[nodiscard]] FaultSchedule fault_schedule(std::uint64_t seed);

/// Carries the calls out, and a barrier after them. Empty if all is well: every member comes to its end
/// within a few times its deadline; results are right; and errors name a member that the fault has touched:
/// one that was killed, one of a node that is late or cut off, or, where the cluster is in two parts, one of
/// the other part. What a late node's own members say is not judged, for they ask in vain. Where all members
/// still answer each other, the error may blame the network between them. Otherwise what is wrong.
[[nodiscard]] std::string problem_of(const FaultSchedule& schedule);

}  // namespace cohort::simulation
