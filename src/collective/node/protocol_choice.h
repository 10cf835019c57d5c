// Which protocol moves data that does not fit a slot on a node: by the table of sizes,
// unless COHORT_ALGORITHM names one and the members' buffers allow it.
#pragma once

#include <limits>
#include <optional>

#include "collective/choice/choice_reason.h"
#include "collective/choice/tuning_table.h"
#include "direct.h"
#include "protocol.h"

namespace cohort::node {

/// The same on all members, since it follows from what all of them know.
class ProtocolChoice {
 public:
  ProtocolChoice(const TuningTable& tuning, std::optional<Protocol> forced)
      : tuning_(tuning), forced_(forced) {}

  [[nodiscard]] Protocol protocol(CollectiveKind kind, BufferAccess access, bool in_place,
                                  std::size_t bytes) const {
    if (bytes < smallest_uncopied_call(kind, access, in_place)) return Protocol::kPieces;
    return access == BufferAccess::kAddressed ? Protocol::kDirect : Protocol::kSingleCopy;
  }

  [[nodiscard]] ChoiceReason reason(CollectiveKind kind, BufferAccess access, bool in_place) const {
    if (is_granted(access)) return ChoiceReason::kForced;
    return access == BufferAccess::kNone ? ChoiceReason::kModel
                                         : reason_of(tuning_.source(figure_of(kind, access, in_place)));
  }

 private:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  /// Whether the members' buffers allow the protocol that is wanted.
  [[nodiscard]] bool is_granted(BufferAccess access) const {
    return forced_ == Protocol::kPieces ||
           (forced_ == Protocol::kDirect && access == BufferAccess::kAddressed) ||
           (forced_ == Protocol::kSingleCopy && access == BufferAccess::kSingleCopy);
  }

  [[nodiscard]] std::size_t smallest_uncopied_call(CollectiveKind kind, BufferAccess access,
                                                   bool in_place) const {
    if (access == BufferAccess::kNone) return kNever;
    if (is_granted(access)) return forced_ == Protocol::kPieces ? kNever : 0;
    return tuning_.bytes(figure_of(kind, access, in_place));
  }

  [[nodiscard]] static Figure figure_of(CollectiveKind kind, BufferAccess access, bool in_place) {
    if (access == BufferAccess::kSingleCopy) return Figure::kSingleCopy;
    if (kind == CollectiveKind::kAllReduce && !in_place) return Figure::kDirectOutOfPlace;
    if (kind == CollectiveKind::kBroadcast) return Figure::kDirectBroadcast;
    return reduces(kind) ? Figure::kDirectReduction : Figure::kDirectMove;
  }

  const TuningTable& tuning_;
  std::optional<Protocol> forced_;
};

}  // namespace cohort::node
