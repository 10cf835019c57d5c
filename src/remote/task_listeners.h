// What a task has taken over when its process starts, and what stays when that process ends.
#pragma once

#include <cohort/cluster/cluster_roles.h>
#include <cohort/remote/endpoint.h>
#include <cohort/remote/task_place.h>

#include "cluster/fd.h"

namespace cohort::remote {

/// On which of the network interfaces a task listens.
enum class Interfaces { kLoopback, kAll };

struct TaskListeners {
  Address address;
  watch::Fd network;
  watch::Fd local;
  watch::Fd memory;  ///< of a `ps` alone
};

/// Listens for a task: with `kLoopback` out of reach for other hosts. Descriptors close on exec.
/// @throws Unavailable when the system refuses.
[[nodiscard]] TaskListeners listen_for(const ClusterTask& task, Interfaces interfaces);

/// The secret of a new job.
[[nodiscard]] std::string random_secret();

}  // namespace cohort::remote
