// Which protocol moves data that does not fit a slot on a node: by the table of sizes,
// unless COHORT_ALGORITHM names one and the members' buffers allow it.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "collective/choice/choice_reason.h"
#include "collective/choice/tuning_table.h"
#include "direct.h"
#include "protocol.h"
#include "tuning.h"

namespace cohort::node {

/// The same on all members, since it follows from what all of them know.
class ProtocolChoice {
 public:
  ProtocolChoice(const TuningTable& tuning, std::optional<Protocol> forced, int members)
      : tuning_(tuning), forced_(forced), members_(static_cast<std::size_t>(members)) {}

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

  /// Whether COHORT_ALGORITHM names a protocol, and the members' buffers allow it.
  [[nodiscard]] bool is_granted(BufferAccess access) const {
    return forced_ == Protocol::kPieces ||
           (forced_ == Protocol::kDirect && access == BufferAccess::kAddressed) ||
           (forced_ == Protocol::kSingleCopy && access == BufferAccess::kSingleCopy);
  }

 private:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] std::size_t smallest_uncopied_call(CollectiveKind kind, BufferAccess access,
                                                   bool in_place) const {
    if (access == BufferAccess::kNone) return kNever;
    if (is_granted(access)) return forced_ == Protocol::kPieces ? kNever : 0;
    const std::size_t figure = tuning_.bytes(figure_of(kind, access, in_place));
    return access == BufferAccess::kSingleCopy ? smallest_single_copy(kind, figure) : figure;
  }

  /// The figure holds for reductions of up to four members, and for calls that bring each byte to one member.
  [[nodiscard]] std::size_t smallest_single_copy(CollectiveKind kind, std::size_t figure) const {
    switch (kind) {
      // Each member has the kernel copy a share of every other one's buffer, so that a system call copies the
      // less the more members there are.
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduce: return figure * std::max<std::size_t>(members_ / 4, 1);
      case CollectiveKind::kAllGather:
        return members_ <= kMostInLateSingleCopy ? figure * kSingleCopyGatherFactor / members_ : figure;
      default: return figure;
    }
  }

  [[nodiscard]] static Figure figure_of(CollectiveKind kind, BufferAccess access, bool in_place) {
    if (access == BufferAccess::kSingleCopy) return Figure::kSingleCopy;
    if (kind == CollectiveKind::kAllReduce && !in_place) return Figure::kDirectOutOfPlace;
    if (kind == CollectiveKind::kBroadcast) return Figure::kDirectBroadcast;
    return reduces(kind) ? Figure::kDirectReduction : Figure::kDirectMove;
  }

  const TuningTable& tuning_;
  std::optional<Protocol> forced_;
  std::size_t members_;
};

}  // namespace cohort::node
