// Barrier: nothing but the latency of hearing from everybody.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& /*seat*/) { return {}; }

void call_mpi(const MpiCall& call) { check_mpi(MPI_Barrier(call.group), "MPI_Barrier"); }

}  // namespace

const Collective kBarrier{
    .command = "barrier",
    .name = "barrier",
    .text = "wait until every member has arrived",
    .peer = "MPI_Barrier",
    .placement = Placement::kNoBuffers,
    .bus_factor = bus_factor_none,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
