// All-to-all: how tokens reach their experts.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  Layout layout{.input = seat.elements, .output = seat.elements};
  for (int member = 0; member < seat.members; ++member) {
    layout.result.push_back({.source = member, .first = seat.block_start(), .elements = seat.block()});
  }
  return layout;
}

void call_mpi(const MpiCall& call) {
  check_mpi(
      MPI_Alltoall(call.input, call.block(), call.type, call.output, call.block(), call.type, call.group),
      "MPI_Alltoall");
}

}  // namespace

const Collective kAllToAll{
    .command = "all-to-all",
    .name = "all_to_all",
    .text = "send block s of each member's tensor to member s",
    .peer = "MPI_Alltoall",
    .nccl = "ncclSend+ncclRecv",
    .divided = true,
    .placement = Placement::kOutOfPlaceOnly,
    .bus_factor = bus_factor_all_but_own,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
