// Scatter: how a root hands out the parts of a batch.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  return {.input = seat.is_root() ? seat.elements : 0,
          .output = seat.block(),
          .offset = seat.is_root() ? seat.block_start() : 0,
          .result = {{.source = kRoot, .first = seat.block_start(), .elements = seat.block()}}};
}

void call_mpi(const MpiCall& call) {
  void* output = call.in_place && call.seat.is_root() ? MPI_IN_PLACE : call.output;
  check_mpi(
      MPI_Scatter(call.input, call.block(), call.type, output, call.block(), call.type, kRoot, call.group),
      "MPI_Scatter");
}

}  // namespace

const Collective kScatter{
    .command = "scatter",
    .name = "scatter",
    .text = "send block r of the root's tensor to member r",
    .peer = "MPI_Scatter",
    .nccl = "ncclSend+ncclRecv",
    .divided = true,
    .bus_factor = bus_factor_all_but_own,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
