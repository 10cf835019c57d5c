// Communicators whose members are on several nodes. Those of one node exchange data
// through shared memory; between nodes each has its own transport. A long collective
// goes in segments, so that memory and network are busy at the same time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <cohort/collective/communicator.h>

#include "collective/network/transport.h"
#include "collective/node_communicators.h"

namespace cohort {

/// `node.workers` are all workers of the job, and say which of them share this worker's node.
struct NetworkGroupOptions {
  NodeGroupOptions node = {};

  /// The transport of one member of this process, by rank.
  std::function<std::unique_ptr<Transport>(int rank)> transport;
};

/// Collective over the workers. One communicator per member of this process; hand each to its own thread.
/// Members are numbered worker by worker.
/// @throws InvalidArgument for less than one member or a wrong time-out, Unimplemented for more than 4096
/// members on one node.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_network_communicators(
    const NetworkGroupOptions& options);

}  // namespace cohort
