#include "mpi_peer.h"

#include "mpi_call.h"
#include "mpi_types.h"

namespace cohort::bench {

std::string MpiPeer::why_not(const PeerCall& call) const {
  if (call.collective->reduces) {
    std::string why = why_mpi_cannot_reduce(call.dtype, call.op);
    if (!why.empty()) return why;
  }
  return why_mpi_cannot_count(call.seat.elements);
}

std::function<void()> MpiPeer::prepare(const PeerCall& call) const {
  MpiCall prepared{.group = group_,
                   .type = mpi_type_to_move(call.dtype),
                   .seat = call.seat,
                   .in_place = call.in_place,
                   .input = call.input,
                   .output = call.output};
  if (call.collective->reduces) prepared.op = mpi_reduction(call.dtype, call.op).value().op;
  prepared.divide_unevenly();
  return [prepared = std::move(prepared), function = call.collective->call_mpi] { function(prepared); };
}

}  // namespace cohort::bench
