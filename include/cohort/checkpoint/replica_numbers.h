// Numbers of which each replica has its own, such as the sums that it has counted since an epoch began.
#pragma once

#include <functional>
#include <span>

namespace cohort {

/// `of(r)` are the numbers of this worker's r-th replica, which live as long as the Checkpoint. All replicas
/// have equally many. They are sums: where a checkpoint has those of another number of replicas, the first
/// replica gets the sum of all, and the others zeros.
struct ReplicaNumbers {
  std::function<std::span<double>(int local_replica)> of = {};
};

}  // namespace cohort
