// Communicators of a cluster that is only simulated: the library's own code for nodes and networks, with all
// members in one thread, a virtual clock, and a network by a model (network_model.h). What members do on
// their node takes no time; only the network does.
//
//     SimulatedCluster cluster({.nodes = 1024, .members = 4});
//     const SimulatedCall call = cluster.run([&](Communicator& member) {
//       return member.all_reduce_async(tensor_of(member.rank()), ReduceOp::kSum);
//     });
//     call.seconds;  // until the last member had its result
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

namespace cohort {

namespace node {
class NodeCommunicatorImpl;
}

namespace simulation {

struct SimulatedClusterOptions {
  int nodes = 2;
  int members = 1;  ///< of each node
  NetworkModel network = {};
  std::vector<Fault> faults = {};
  std::size_t copied_bytes = SIZE_MAX;  ///< longer messages are not copied, where only times matter
  CommunicationOptions communication = {};
};

struct SimulatedCall {
  double seconds = 0;                        ///< until the last member had its result or its error
  std::vector<std::optional<Error>> errors;  ///< of each member; none for one that is dead
};

class SimulatedCluster {
 public:
  explicit SimulatedCluster(const SimulatedClusterOptions& options);
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  [[nodiscard]] int size() const noexcept { return static_cast<int>(communicators_.size()); }
  [[nodiscard]] Communicator& communicator(int rank) {
    return *communicators_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] double seconds() const noexcept { return network_.seconds(); }
  [[nodiscard]] bool is_dead(int rank) const noexcept { return network_.is_dead(rank); }

  /// Every member that lives starts a call, and all are driven until each has its result or its error.
  /// @throws DeadlineExceeded where one has neither after `longest_seconds` of the virtual clock, naming it.
  SimulatedCall run(const std::function<Work(Communicator&)>& start, double longest_seconds = 3600);

 private:
  [[nodiscard]] bool drive_node(int node);
  void drive_all();

  SimulatedClusterOptions options_;
  SimulatedNetwork network_;
  std::vector<std::shared_ptr<node::NodeCommunicatorImpl>> members_;  ///< by rank
  std::vector<std::unique_ptr<Communicator>> communicators_;          ///< by rank
};

}  // namespace simulation
}  // namespace cohort
