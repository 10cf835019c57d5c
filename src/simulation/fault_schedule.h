// Jobs in which something goes wrong, made from a seed: a cluster, a sequence of calls, of which some divide
// the members into groups and some are made by a group, and a fault at some time. For tests that the library
// neither hangs nor gives wrong results, and names who is guilty.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cohort/collective/collective_kind.h>

#include "simulation/simulated_cluster.h"

namespace cohort::simulation {

struct FaultSchedule {
  static constexpr double kTimeout = 0.2;  ///< virtual seconds
  /// A delay below it is none that anybody may complain about.
  static constexpr double kHarmlessDelay = kTimeout / 50;
  static constexpr int kAll = -1;

  /// Members take part in every split. `by` of them with consecutive ranks have a color, and the next ones
  /// another, of `colors`.
  struct Division {
    int by = 1;
    int colors = 1;

    [[nodiscard]] int color_of(int rank) const noexcept { return rank / by % colors; }
  };
  struct Call {
    CollectiveKind kind = CollectiveKind::kBarrier;
    std::int64_t elements = 0;  ///< of a block, float32
    int of = kAll;              ///< made by all members, or by their groups of the split with this number
    Division division = {};     ///< of a split
  };

  SimulatedClusterOptions cluster;
  std::vector<Call> calls;
  bool probes = false;  ///< groups over several nodes measure the network first, and do not know its figures

  /// In words, for messages.
  [[nodiscard]] std::string describe() const;
};

/// The same for the same seed.
[[nodiscard]] FaultSchedule fault_schedule(std::uint64_t seed);

/// Carries the calls out, and a barrier of all after them. Empty if all is well: every member comes to its
/// end within a few times its deadline; results are right; and errors name a member that the fault has
/// touched: one that was killed, one of a node that is late or cut off, or, where the cluster is in two
/// parts, one of the other part. What a late node's own members say is not judged, for they ask in vain.
/// Where all members still answer each other, the error may blame the network between them. Who waits in one
/// communicator may blame a member that waits in another one, or has failed there; then that member's error
/// counts. Otherwise what is wrong. Forgets what this process has measured of networks.
[[nodiscard]] std::string problem_of(const FaultSchedule& schedule);

}  // namespace cohort::simulation
