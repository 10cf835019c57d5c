#include <cohort/cluster/worker.h>

#include <fmt/format.h>

namespace cohort {

std::string describe(const WorkerInfo& worker) {
  return fmt::format("worker {} (host {}, pid {})", worker.rank, worker.host, worker.pid);
}

}  // namespace cohort
