// What the workers do together at the start of a Session: find out who takes part, through MPI's blocking
// collectives, connect, and share the cores of their hosts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/base/config.h>
#include <cohort/cluster/worker.h>

#include "calls.h"
#include "cluster/launcher.h"
#include "worker_group.h"

namespace cohort::mpi {

/// The settings of this process. Where the environment's are wrong, `complaint` says how, and the defaults
/// hold until all workers have heard of it.
struct StartSettings {
  const Config& values;
  std::string complaint = {};
};

/// All processes of `world` by rank, with their nodes; `place` is what this one's launcher says. Collective.
/// @throws InvalidArgument on all of them when they do not run the same version of Cohort, a setting is wrong
/// on one of them, they have different numbers of devices, watch each other in different ways, or are not the
/// ranks that their launchers meant them to be. Different numbers of GPUs are a warning of rank 0.
[[nodiscard]] std::vector<WorkerInfo> discover_workers(MPI_Comm world, const StartSettings& settings,
                                                       const std::optional<LauncherPlace>& place);

/// The first messages between workers of different nodes. MPI connects two processes at their first message.
/// Where both send it at the same moment, each makes a TCP connection, and one of the two is closed. Open
/// MPI 4.1 was seen to write to the closed one ("mca_btl_tcp_frag_send: writev failed: Broken pipe"), and to
/// end the job. So of each two workers one sends first, and the other answers.
///
/// Collective over `comm`, whose ranks are `workers`, and blocks in MPI: the caller has a watchdog for a
/// worker that does not come. For a thread that may call MPI. It connects those whom MPI has not connected
/// yet; over several interfaces, by the first of them. Among more than 64 workers, of which most pairs never
/// talk, it does nothing.
void make_first_contacts(MPI_Comm comm, std::span<const WorkerInfo> workers);

/// Cores for the workers of a host whose launcher left them all the same ones. Gives this process its share
/// of the cores that it and others of its host may run on, unless it does not want to be bound. The first
/// worker of a host with more workers than cores says so. Collective.
void bind_cores(WorkerGroup& everyone, bool wanted);

}  // namespace cohort::mpi
