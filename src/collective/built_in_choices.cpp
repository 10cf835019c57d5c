// What Cohort itself gives to choose from: the names of its algorithms, and the figures that are built in.
// The tables of choice/ are filled here, from node and network, so that choice/ needs neither of them.
#include <array>
#include <vector>

#include "collective/choice/selection.h"
#include "collective/choice/tuning_figures.h"
#include "collective/network/cost_model.h"
#include "collective/network/lane_algorithms.h"
#include "collective/node/protocol.h"

namespace cohort {
namespace {

constexpr CostConstants kNetwork = network::kBuiltInConstants;

std::vector<BuiltInAlgorithm> collect() {
  std::vector<BuiltInAlgorithm> algorithms;
  algorithms.reserve(node::kProtocols.size() + network::lane_algorithms().size() + 1);
  for (const node::Protocol protocol : node::kProtocols)
    algorithms.push_back({.name = to_string(protocol), .protocol = protocol});
  for (const network::LaneAlgorithm* const algorithm : network::lane_algorithms()) {
    if (algorithm->in_rank_order) continue;
    algorithms.push_back(
        {.name = algorithm->setting(), .kind = algorithm->kind, .lane_algorithm = algorithm});
  }
  algorithms.push_back({.name = kTransportAlgorithm, .of_transport = true});
  return algorithms;
}

}  // namespace

std::span<const BuiltInAlgorithm> built_in_algorithms() {
  static const auto* const all =
      new const std::vector<BuiltInAlgorithm>(collect());  // communicators point to them
  return *all;
}

constexpr std::array<FigureSpec, kFigures> kFigureSpecs{{
    {"direct_reduction_bytes", "sums in place, reduce and reduce-scatter: `direct` from here on",
     node::kSmallestDirectReduction},
    {"direct_out_of_place_bytes", "all-reduce out of place: `direct` from here on",
     node::kSmallestDirectOutOfPlace},
    {"direct_move_bytes", "all-gather, gather, scatter and all-to-all: `direct` from here on",
     node::kSmallestDirectMove},
    {"direct_broadcast_bytes", "broadcast: `direct` from here on", node::kSmallestDirectBroadcast},
    {"single_copy_bytes", "memory outside the heap: `single_copy` from here on, all-gathers later",
     node::kSmallestSingleCopy},
    {"latency_seconds", "alpha: a short message between nodes", kNetwork.latency_seconds},
    {"seconds_per_byte", "beta: a byte on a node's wire", kNetwork.seconds_per_byte},
    {"reduce_seconds_per_byte", "gamma: a byte reduced", kNetwork.reduce_seconds_per_byte},
    {"lanes", "long calls: members of a node that send and receive, at most", network::kBuiltInLanes},
}};

std::vector<TuningFigure> fixed_node_figures() {
  const auto figure = [](std::string_view name, std::string_view text, std::size_t bytes) {
    return TuningFigure{name, text, static_cast<double>(bytes), TuningSource::kBuiltIn};
  };
  return {
      figure("slot_bytes", "`slot` from here on, `line` below", node::kPayloadBytes + 1),
      figure("pieces_bytes", "`pieces` from here on, up to the sizes of other protocols",
             node::kSlotBytes + 1),
      figure("shared_broadcast_bytes", "broadcast of two members, `direct`: both write from here on",
             node::kSmallestSharedBroadcast),
      figure("stream_others_bytes", "`direct` out of place: others' results past the caches from here on",
             node::kSmallestStreamOthers),
      figure("stream_bytes", "`direct` out of place: all results past the caches from here on",
             node::kSmallestStream),
  };
}

}  // namespace cohort
