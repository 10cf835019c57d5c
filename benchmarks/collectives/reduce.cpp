// Reduce: an all-reduce whose result only the root gets.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  if (!seat.is_root()) return {.input = seat.elements};
  return {.input = seat.elements,
          .output = seat.elements,
          .result = {{.source = Piece::kReduced, .first = 0, .elements = seat.elements}}};
}

void call_mpi(const MpiCall& call) {
  // Only the root may reduce in place; the others pass their input as ever.
  const void* input = call.seat.is_root() ? call.input_or_in_place() : call.input;
  check_mpi(MPI_Reduce(input, call.output, call.elements(), call.type, call.op, kRoot, call.group),
            "MPI_Reduce");
}

}  // namespace

const Collective kReduce{
    .command = "reduce",
    .name = "reduce",
    .text = "combine every member's tensor element by element, on the root",
    .peer = "MPI_Reduce",
    .nccl = "ncclReduce",
    .reduces = true,
    .bus_factor = bus_factor_once,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
