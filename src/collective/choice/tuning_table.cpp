#include "tuning_table.h"

#include "collective/network/cost_model.h"
#include "collective/node/tuning.h"

namespace cohort {
namespace {

struct Spec {
  std::string_view name;
  std::string_view text;
  double built_in;
};

constexpr CostConstants kNetwork = network::kBuiltInConstants;

/// By `Figure`.
constexpr std::array<Spec, kFigures> kSpecs{{
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

struct Range {
  std::size_t begin;
  std::size_t end;
};

Range range_of(TuningScope scope) noexcept {
  return scope == TuningScope::kNode ? Range{0, kNodeFigures} : Range{kNodeFigures, kFigures};
}

}  // namespace

std::string_view to_string(TuningSource source) noexcept {
  switch (source) {
    case TuningSource::kBuiltIn: return "built-in";
    case TuningSource::kProbed: return "probed";
    case TuningSource::kFile: return "file";
  }
  return "unknown";
}

TuningTable::TuningTable() {
  for (std::size_t i = 0; i < kFigures; ++i) entries_[i] = {kSpecs[i].built_in, TuningSource::kBuiltIn};
}

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

std::optional<Figure> find_figure(std::string_view name, TuningScope scope) noexcept {
  const Range range = range_of(scope);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (kSpecs[i].name == name) return static_cast<Figure>(i);
  }
  return std::nullopt;
}

std::vector<TuningFigure> TuningTable::figures(TuningScope scope) const {
  const Range range = range_of(scope);
  std::vector<TuningFigure> figures;
  for (std::size_t i = range.begin; i < range.end; ++i)
    figures.push_back({kSpecs[i].name, kSpecs[i].text, entries_[i].value, entries_[i].source});
  return figures;
}

}  // namespace cohort
