// The first messages between workers of different nodes. MPI connects two processes at their first message.
// Where both send it at the same moment, each makes a TCP connection, and one of the two is closed. Open
// MPI 4.1 was seen to write to the closed one ("mca_btl_tcp_frag_send: writev failed: Broken pipe"), and to
// end the job. So of each two workers one sends first, and the other answers.
#pragma once

#include <span>

#include <cohort/cluster/worker.h>

#include "calls.h"

namespace cohort::mpi {

/// Collective over `comm`, whose ranks are `workers`, and blocks in MPI: the caller has a watchdog for a
/// worker that does not come. For a thread that may call MPI. It connects those whom MPI has not connected
/// yet; over several interfaces, by the first of them. Among more than 64 workers, of which most pairs never
/// talk, it does nothing.
void make_first_contacts(MPI_Comm comm, std::span<const WorkerInfo> workers);

}  // namespace cohort::mpi
