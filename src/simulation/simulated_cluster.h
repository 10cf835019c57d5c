// Communicators of a cluster that is only simulated: the library's own code for nodes and networks, with all
// members in one thread, a virtual clock, and a network by a model (simulated_network.h). What members do on
// their node takes no time; only the network does.
//
//     SimulatedCluster cluster({.nodes = 1024, .members = 4});
//     const SimulatedRun run = cluster.run(1, [&](Communicator& member, int) {
//       return member.all_reduce_async(tensor_of(member.rank()), ReduceOp::kSum);
//     });
//     run.seconds;  // until the last member had its result
//
// Members divide into groups by `split`, whose Work is a call like any other. What members tell each other in
// a split must arrive as a whole, so `copied_bytes` must not cut it off. Groups live as long as the cluster.
//
// Waits and deadlines of this thread go by the virtual clock while the cluster lives.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/communicator.h>

#include "simulation/simulated_network.h"

namespace cohort::simulation {

struct SimulatedClusterOptions {
  int nodes = 2;
  int members = 1;  ///< of each node
  NetworkModel network = {};
  std::vector<Fault> faults = {};
  std::size_t copied_bytes = SIZE_MAX;  ///< of each message, where only times matter and not results
  CommunicationOptions communication = {};
};

/// What a run has come to.
struct SimulatedRun {
  double seconds = 0;                        ///< until the last member had its last result, or its error
  std::vector<std::optional<Error>> errors;  ///< of each member; none for one that is dead
  std::vector<int> calls;                    ///< that each member has ended without an error
};

class SimulatedCluster {
 public:
  explicit SimulatedCluster(const SimulatedClusterOptions& options);
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  [[nodiscard]] int size() const noexcept { return options_.nodes * options_.members; }
  /// The member's communicator of all members.
  [[nodiscard]] Communicator& communicator(int rank);
  [[nodiscard]] double seconds() const noexcept { return network_.seconds(); }
  [[nodiscard]] bool is_dead(int rank) const noexcept { return network_.is_dead(rank); }

  /// Starts a member's call number `call`, on `member` or on a group of its own.
  using Start = std::function<Work(Communicator& member, int call)>;

  /// Starts a member's part of a split of `parent`, which is its communicator or a group of its own. Where
  /// the split fails, its Work throws.
  [[nodiscard]] Work split(int rank, Communicator& parent, std::optional<int> color, int key = 0);
  /// What the member's split number `split`, from 0, has come to: null where it takes part in no group, and
  /// before it has waited for the Work.
  [[nodiscard]] Communicator* group(int rank, int split);

  /// Every member that lives makes so many calls, each as soon as it has the result of the one before, until
  /// the last one or an error.
  /// @throws DeadlineExceeded where a member has come to neither after `longest_seconds` of the virtual
  /// clock, naming it.
  SimulatedRun run(int calls, const Start& start, double longest_seconds = 3600);

 private:
  struct Progress;
  struct Part;
  struct Split;
  class SplitWork;
  struct Member;
  [[nodiscard]] Member& member(int rank);
  bool drive_alone(int rank, Progress& progress);
  bool drive(int rank, Progress& progress);
  void drive_node(int node, Progress& progress);

  void leave_unfinished_groups();

  SimulatedClusterOptions options_;
  SimulatedNetwork network_;
  std::vector<Member> members_;  ///< by rank
};

}  // namespace cohort::simulation
