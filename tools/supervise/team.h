// What a supervisor needs beside its command line: which tasks are its own, where all tasks listen, and where
// the other supervisors are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "hosts.h"
#include "remote/task_listeners.h"

namespace cohort::supervise {

struct Team {
  int host = 0;                                       ///< this one's number
  std::vector<int> hosts = {};                        ///< on which host each task runs
  std::vector<int> standby_hosts = {};                ///< and its standby, or kNoHost
  std::vector<remote::Address> addresses = {};        ///< of all tasks; of a `ps` with those of its standby
  std::vector<remote::TaskListeners> listeners = {};  ///< of the tasks of this host, in their order
  std::vector<remote::TaskListeners> listeners_of_standbys = {};  ///< of this host
  std::string secret = {};
  std::optional<HostsOptions> others = {};  ///< how to reach them; nothing where there is one host
};

/// One host, whose tasks listen there alone.
[[nodiscard]] Team team_of_one(const std::vector<ClusterTask>& tasks);

/// The supervisors that an MPI launcher has started. MPI serves to exchange addresses and the secret; it is
/// not used afterwards. With 2 `copies` servers have standbys. Collective.
/// @throws InvalidArgument when they have other tasks; Unavailable when one of them is lost.
[[nodiscard]] Team meet(int& argc, char**& argv, const std::vector<ClusterTask>& tasks, int copies);

}  // namespace cohort::supervise
