// All-gather: how members that each own a part of the weights get them all.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  return {.input = seat.block(),
          .output = seat.elements,
          .offset = seat.block_start(),
          .result = block_of_each(seat)};
}

void call_mpi(const MpiCall& call) {
  check_mpi(MPI_Allgather(call.input_or_in_place(), call.block(), call.type, call.output, call.block(),
                          call.type, call.group),
            "MPI_Allgather");
}

}  // namespace

const Collective kAllGather{
    .command = "all-gather",
    .name = "all_gather",
    .text = "put the members' tensors one after the other, on all members",
    .peer = "MPI_Allgather",
    .nccl = "ncclAllGather",
    .divided = true,
    .bus_factor = bus_factor_all_but_own,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
