// How data moves on a node that does not fit a slot: by the table of sizes, unless
// COHORT_ALGORITHM wants one way and the members' buffers allow it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "collective/choice_reason.h"
#include "collective/tuning_table.h"
#include "direct.h"

namespace cohort::node {

enum class Way : std::uint8_t { kPieces, kDirect, kSingleCopy };

/// As benchmarks name it, for example `single_copy`.
[[nodiscard]] constexpr std::string_view to_string(Way way) noexcept {
  switch (way) {
    case Way::kPieces: return "pieces";
    case Way::kDirect: return "direct";
    case Way::kSingleCopy: return "single_copy";
  }
  return "unknown";
}

/// The same on all members, for it goes by what all know alike.
class WayChoice {
 public:
  WayChoice(const TuningTable& tuning, std::optional<Way> wanted) : tuning_(tuning), wanted_(wanted) {}

  [[nodiscard]] Way way(CollectiveKind kind, Reach reach, bool in_place, std::size_t bytes) const {
    if (bytes < smallest_direct_call(kind, reach, in_place)) return Way::kPieces;
    return reach == Reach::kAddressed ? Way::kDirect : Way::kSingleCopy;
  }

  [[nodiscard]] ChoiceReason reason(CollectiveKind kind, Reach reach, bool in_place) const {
    if (is_granted(reach)) return ChoiceReason::kForced;
    return reach == Reach::kNone ? ChoiceReason::kModel
                                 : reason_of(tuning_.source(figure_of(kind, reach, in_place)));
  }

 private:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  /// Whether the members' buffers allow the way that is wanted.
  [[nodiscard]] bool is_granted(Reach reach) const {
    return wanted_ == Way::kPieces || (wanted_ == Way::kDirect && reach == Reach::kAddressed) ||
           (wanted_ == Way::kSingleCopy && reach == Reach::kSingleCopy);
  }

  [[nodiscard]] std::size_t smallest_direct_call(CollectiveKind kind, Reach reach, bool in_place) const {
    if (reach == Reach::kNone) return kNever;
    if (is_granted(reach)) return wanted_ == Way::kPieces ? kNever : 0;
    return tuning_.bytes(figure_of(kind, reach, in_place));
  }

  [[nodiscard]] static Figure figure_of(CollectiveKind kind, Reach reach, bool in_place) {
    if (reach == Reach::kSingleCopy) return Figure::kSingleCopy;
    switch (kind) {
      case CollectiveKind::kAllReduce: return in_place ? Figure::kDirectReduction : Figure::kDirectOutOfPlace;
      case CollectiveKind::kReduce:
      case CollectiveKind::kReduceScatter: return Figure::kDirectReduction;
      case CollectiveKind::kBroadcast: return Figure::kDirectBroadcast;
      default: return Figure::kDirectMove;
    }
  }

  const TuningTable& tuning_;
  std::optional<Way> wanted_;
};

}  // namespace cohort::node
