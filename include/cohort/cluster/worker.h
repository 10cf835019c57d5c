// A worker is one process of the job. WorkerInfo says who it is and where it runs;
// every worker knows the infos of all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort {

struct WorkerInfo {
  int rank = 0;        ///< 0 to number of workers - 1; worker 0 is the chief
  int node = 0;        ///< number of the node, in order of its lowest rank
  int local_rank = 0;  ///< 0 to number of workers on this node - 1
  std::string host = {};
  std::int64_t pid = 0;
};

/// For example `worker 2 (host n1, pid 4711)`: what messages call a worker.
[[nodiscard]] std::string describe(const WorkerInfo& worker);

/// Sets nodes and places on them: workers of the same machine share a node, but no more than
/// `workers_per_node` of them, unless that is 0. `machines` are their names, by rank.
void number_nodes(std::span<WorkerInfo> workers, std::span<const std::string> machines, int workers_per_node);

/// The infos of `ranks`, numbered anew in this order, with nodes and places on them.
[[nodiscard]] std::vector<WorkerInfo> renumbered(std::span<const WorkerInfo> workers,
                                                 std::span<const int> ranks);

}  // namespace cohort
