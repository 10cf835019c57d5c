// The first messages between workers of different nodes. Where both of two processes make the first contact
// at the same moment, each makes a TCP connection, and one of the two must give way. Open MPI 4.1 was seen to
// write to the one that had been closed ("mca_btl_tcp_frag_send: writev failed: Broken pipe"), and to end the
// job. So of each two workers one makes the contact, and the other answers.
#pragma once

#include <span>

#include <cohort/cluster/worker.h>

#include "calls.h"

namespace cohort::mpi {

/// Collective over `comm`, whose ranks are `workers`, and blocks in MPI. Among more than 64 workers, which
/// need not all have connections to each other, it does nothing.
void make_first_contacts(MPI_Comm comm, std::span<const WorkerInfo> workers);

}  // namespace cohort::mpi
