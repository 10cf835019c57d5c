// A worker is one process of the job. WorkerInfo says who it is and where it runs;
// every worker knows the infos of all.
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace cohort
