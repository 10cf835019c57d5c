// Communicators whose members have their tensors in the memory of their hosts.
//
// Those of one node (threads of one process, processes, or both) exchange data through shared memory, without
// messages. Tensors of the node heap are read and written where they are; others are copied once, or pass
// through cells. Between nodes each member has its own transport. There a long collective goes in segments,
// so that memory and network are busy at the same time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/cluster/worker.h>
#include <cohort/collective/communicator.h>

#include "cluster/descriptor_exchange.h"
#include "device/machine.h"
#include "device/node_memory.h"

namespace cohort {

namespace node {
class LineCounter;
}
struct JobReport;
class RecordObserver;
class Transport;

/// How the announcements of a node's members reach each other.
struct LevelOptions {
  /// So many members look at each other's lines; more of them meet by the levels of the machine.
  int most_members_without_tree = 8;
  /// Where the members are, by local rank, if all are of this process; empty: as COHORT_TOPOLOGY and the
  /// cores of their processes say.
  std::vector<LevelGroups> groups = {};
  std::shared_ptr<node::LineCounter> counter = {};  ///< of all members; null: nobody counts
};

struct NodeGroupOptions {
  std::shared_ptr<const NodeMemory> memory = NodeMemory::of_this_process_alone();
  std::vector<WorkerInfo> workers = {};      ///< by rank; empty: this process alone
  int rank = 0;                              ///< of this process among them
  int members = 1;                           ///< of this process; the same number in each
  BlobExchange exchange = {};                ///< among the workers; may be null when there is one
  std::function<const Error*()> fault = {};  ///< returns the loss of a worker, or null; called while waiting
  std::function<void()> on_failure =
      {};  ///< called when the communicator has failed, on any thread; may be null
  /// Takes the report of a failed communicator in place of standard error and COHORT_REPORT, by a member of
  /// each node, on any thread; may be null.
  std::function<void(const JobReport&)> on_report = {};
  std::shared_ptr<RecordObserver> observer = {};  ///< of the members' records; may be null
  CommunicationOptions communication = {};
  LevelOptions levels = {};
  /// Control blocks lie in the node heap, where all their pages are there from the beginning. Otherwise, for
  /// a process alone on its node that has very many of them, pages come as they are used.
  bool blocks_in_heap = true;
  /// Any thread may drive the members' calls, one at a time; otherwise only the one that makes them.
  bool any_thread = true;
};

/// Collective over the workers, all of which share this node. One communicator per member of this process;
/// hand each to its own thread. Members are numbered worker by worker.
/// @throws InvalidArgument for less than one member or a wrong time-out, Unimplemented for more than 4096
/// members on one node.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_node_communicators(
    const NodeGroupOptions& options);

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
