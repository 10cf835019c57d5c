// Reduce-scatter: what an optimizer that is divided among the members needs of the gradients.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  return {.input = seat.elements,
          .output = seat.block(),
          .offset = seat.block_start(),
          .result = {{.source = Piece::kReduced, .first = seat.block_start(), .elements = seat.block()}}};
}

void call_mpi(const MpiCall& call) {
  check_mpi(MPI_Reduce_scatter_block(call.input_or_in_place(), call.output, call.block(), call.type, call.op,
                                     call.group),
            "MPI_Reduce_scatter_block");
}

}  // namespace

const Collective kReduceScatter{
    .command = "reduce-scatter",
    .name = "reduce_scatter",
    .text = "combine as all-reduce, but leave each member only its block of the result",
    .peer = "MPI_Reduce_scatter_block",
    .nccl = "ncclReduceScatter",
    .reduces = true,
    .divided = true,
    .mpi_result_first = true,
    .bus_factor = bus_factor_all_but_own,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
