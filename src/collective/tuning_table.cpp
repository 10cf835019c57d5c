#include "tuning_table.h"

#include "network/cost_model.h"
#include "node/tuning.h"

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
    {"single_copy_bytes", "memory outside the heap: `single_copy` from here on", node::kSmallestSingleCopy},
    {"latency_seconds", "alpha: a short message between nodes", kNetwork.latency_seconds},
    {"seconds_per_byte", "beta: a byte on a node's wire", kNetwork.seconds_per_byte},
    {"reduce_seconds_per_byte", "gamma: a byte reduced", kNetwork.reduce_seconds_per_byte},
}};

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

std::vector<TuningFigure> TuningTable::figures(TuningScope scope) const {
  const bool of_node = scope == TuningScope::kNode;
  std::vector<TuningFigure> figures;
  for (std::size_t i = of_node ? 0 : kNodeFigures; i < (of_node ? kNodeFigures : kFigures); ++i)
    figures.push_back({kSpecs[i].name, kSpecs[i].text, entries_[i].value, entries_[i].source});
  return figures;
}

}  // namespace cohort
