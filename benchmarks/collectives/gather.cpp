// Gather: an all-gather whose result only the root gets.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  if (!seat.is_root()) return {.input = seat.block()};
  return {.input = seat.block(),
          .output = seat.elements,
          .offset = seat.block_start(),
          .result = block_of_each(seat)};
}

void call_mpi(const MpiCall& call) {
  const void* input = call.seat.is_root() ? call.input_or_in_place() : call.input;
  check_mpi(
      MPI_Gather(input, call.block(), call.type, call.output, call.block(), call.type, kRoot, call.group),
      "MPI_Gather");
}

}  // namespace

const Collective kGather{
    .command = "gather",
    .name = "gather",
    .text = "put the members' tensors one after the other, on the root",
    .peer = "MPI_Gather",
    .nccl = "ncclSend+ncclRecv",
    .divided = true,
    .bus_factor = bus_factor_all_but_own,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
