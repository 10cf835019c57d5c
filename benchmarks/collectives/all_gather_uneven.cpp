// All-gather of parts of different sizes, as of a last, smaller batch.
#include "collective.h"
#include "mpi_call.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

Layout layout(const Seat& seat) {
  const std::vector<std::size_t> counts = uneven_counts(seat);
  Layout layout{.output = seat.elements};
  for (int member = 0; member < seat.members; ++member) {
    const std::size_t count = counts[static_cast<std::size_t>(member)];
    if (member < seat.member) layout.offset += count;
    if (member == seat.member) layout.input = count;
    layout.result.push_back({.source = member, .first = 0, .elements = count});
  }
  return layout;
}

void call_mpi(const MpiCall& call) {
  const int count = call.counts[static_cast<std::size_t>(call.seat.member)];
  check_mpi(MPI_Allgatherv(call.input_or_in_place(), count, call.type, call.output, call.counts.data(),
                           call.offsets.data(), call.type, call.group),
            "MPI_Allgatherv");
}

}  // namespace

const Collective kAllGatherUneven{
    .command = "all-gather-uneven",
    .name = "all_gather_uneven",
    .text = "the same with tensors of different sizes: rank r has r + 1 shares",
    .peer = "MPI_Allgatherv",
    .nccl = "ncclBroadcast",
    .bus_factor = bus_factor_all_but_own,
    .layout = layout,
    .call_mpi = call_mpi,
};

}  // namespace cohort::bench
