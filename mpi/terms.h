// What all workers must choose alike when they make communicators.
#pragma once

#include <cstdint>
#include <span>

#include <cohort/cluster/worker.h>

namespace cohort::mpi {

struct Terms {
  std::int64_t members = 1;  ///< of each worker
  std::int64_t reproducible = 0;
  std::int64_t any_thread = 1;  ///< whether MPI may be called by any thread, one at a time
};

/// @throws InvalidArgument with the same text on all workers, naming one that differs from most.
void require_same_terms(std::span<const Terms> by_worker, std::span<const WorkerInfo> workers);

}  // namespace cohort::mpi
