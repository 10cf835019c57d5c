#include <cohort/resolvers/mpi_cluster_resolver.h>

namespace cohort {

ClusterSpec MpiClusterResolver::cluster_spec() const {
  ClusterSpec::Tasks tasks;
  for (const WorkerInfo& worker : session_.workers()) tasks.emplace(worker.rank, worker.host);
  return ClusterSpec({{"worker", std::move(tasks)}});
}

}  // namespace cohort
