// Broadcast: how all members get the same initial weights.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  return {.input = seat.is_root() ? seat.elements : 0,
          .output = seat.elements,
          .result = {{.source = kRoot, .first = 0, .elements = seat.elements}}};
}

void call_mpi(const MpiCall& call) {
  check_mpi(MPI_Bcast(call.output, call.elements(), call.type, kRoot, call.group), "MPI_Bcast");
}

}  // namespace

const Collective kBroadcast{
    .command = "broadcast",
    .name = "broadcast",
    .text = "copy the root's tensor to all members",
    .peer = "MPI_Bcast",
    .nccl = "ncclBroadcast",
    .placement = Placement::kInPlaceOnly,
    .in_place_by_default = true,
    .bus_factor = bus_factor_once,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
