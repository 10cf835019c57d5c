#include "site.h"

#include <numeric>

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

#include "../node/carry_out.h"

namespace cohort::network {

Steps on_node(Site& site, CollectiveCall part, std::vector<std::size_t> counts) {
  part.counts = counts;
  part.layout = 0;
  part.buffers = {};
  if (site.alone_on_node()) {
    if (part.output != nullptr && part.output != part.input)
      copy_bytes(part.output, part.input, part.elements * size_of(part.dtype));
    co_return;
  }
  Steps steps = node::carry_out(site.seat, part);
  co_await finished(steps);
}

Steps spread_on_node(Site& site, DType dtype, std::byte* data, std::size_t elements, int seat) {
  CollectiveCall part;
  part.kind = CollectiveKind::kBroadcast;
  part.dtype = dtype;
  part.elements = elements;
  part.root = seat;
  part.input = part.output = data;
  return on_node(site, part);
}

std::vector<std::size_t> lane_counts(const Site& site, std::size_t elements) {
  const Blocks shares(elements, site.topology.lanes());
  std::vector<std::size_t> counts(static_cast<std::size_t>(site.neighbours()));
  for (int lane = 0; lane < site.topology.lanes(); ++lane)
    counts[static_cast<std::size_t>(lane)] = shares.elements(lane);
  return counts;
}

std::size_t own_share(const Site& site, const std::vector<std::size_t>& counts) {
  const auto seat = static_cast<std::ptrdiff_t>(site.seat.place().rank);
  return std::accumulate(counts.begin(), counts.begin() + seat, std::size_t{0});
}

Segments segments_of(const Site& site, const CollectiveCall& call, std::size_t share_bytes) {
  return {call.elements, share_bytes / size_of(call.dtype) * static_cast<std::size_t>(site.topology.lanes())};
}

}  // namespace cohort::network
