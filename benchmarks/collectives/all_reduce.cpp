// All-reduce: what data-parallel training does with its gradients at every step.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  return {.input = seat.elements,
          .output = seat.elements,
          .result = {{.source = Piece::kReduced, .first = 0, .elements = seat.elements}}};
}

void call_mpi(const MpiCall& call) {
  check_mpi(
      MPI_Allreduce(call.input_or_in_place(), call.output, call.elements(), call.type, call.op, call.group),
      "MPI_Allreduce");
}

}  // namespace

const Collective kAllReduce{
    .command = "all-reduce",
    .name = "all_reduce",
    .text = "combine every member's tensor element by element, on all members",
    .peer = "MPI_Allreduce",
    .nccl = "ncclAllReduce",
    .reduces = true,
    .in_place_by_default = true,
    .bus_factor = bus_factor_twice_across,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
