// A TaskPlace is what a task knows of its job when it starts: which task it is, where all tasks listen, the
// job's secret, and what it has taken over from whoever started it. The latter outlives the task's process:
// the sockets it listens on, so that its address stays valid while it is started again, and the memory of a
// parameter server.
//
// A value. It owns none of its descriptors: in a task of `cohort-run --roles` they are the process's own
// (TaskClusterResolver), in a LocalCluster that object's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/cluster_roles.h>
#include <cohort/cluster/cluster_spec.h>
#include <cohort/remote/endpoint.h>

namespace cohort::remote {

struct TaskPlace {
  ClusterTask task = {};
  std::vector<Address> addresses = {};  ///< of all tasks, this one's included; by job, then by index
  std::string secret = {};              ///< of the job: 32 random bytes
  int network_listener = -1;            ///< a listening TCP socket
  int local_listener = -1;              ///< a listening abstract local socket
  int memory = -1;                      ///< of a `ps`: the memory file of its variables; -1 for others
  int restarts = 0;                     ///< how often the task was started again; 0 for its first process
  int supervisor = -1;   ///< of a `ps` that has a standby, or is one: its SupervisorLine; -1 for others
  bool standby = false;  ///< a `ps` that copies the one of its name on another host, until it takes over
};

/// Where a task of the place's job listens. @throws InvalidArgument for a task that it does not have.
[[nodiscard]] const Address& address_of(const TaskPlace& place, const ClusterTask& task);

/// What an Endpoint of the task needs. It gets duplicates of the listeners, for it closes those that it is
/// given.
/// @throws Unavailable when the system has no descriptors left.
[[nodiscard]] EndpointOptions endpoint_options(const TaskPlace& place);

/// The cluster as a resolver gives it: of each task the first of its addresses in the network.
[[nodiscard]] ClusterSpec cluster_spec(const TaskPlace& place);

}  // namespace cohort::remote
