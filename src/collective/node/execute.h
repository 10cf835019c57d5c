// Executes a collective on a node by the protocol that suits it. For a call that fits a slot the size alone
// decides; for others what all members have announced about their buffers, so that all choose alike: by the
// table of sizes, unless COHORT_ALGORITHM names a protocol and the members' buffers allow it. The table is
// what a probe has found on this node; what is built in is in protocol.h.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include <cohort/collective/algorithm.h>
#include <cohort/collective/task.h>

#include "collective/choice/choice_log.h"
#include "collective/choice/tuning_figures.h"
#include "direct.h"
#include "protocol.h"

namespace cohort::node {

class Endpoint;

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
      // What the kernel reads from the root goes through no cell of it.
      case CollectiveKind::kBroadcast:
      case CollectiveKind::kScatter: return std::min(figure, kSingleCopyFromRootPerMember * members_);
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

// ---- the table of sizes

/// Makes the endpoint's tuning table, the same on all members: member 0's if it knows one for groups of this
/// shape, what is built in where members outnumber cores, and otherwise what a probe finds. All members are
/// in the same call, of which this is a part.
///
/// The probe finds out, within the first collective that needs it, from which sizes on each protocol is the
/// fastest on this node: a few milliseconds of collectives, timed on all members. Only a protocol that is
/// faster time after time moves a figure away from its built-in value, since those were measured for longer.
[[nodiscard]] Task<> agree_on_tuning(Endpoint& endpoint);

// ---- the cost of collectives on one node, for the comparison with algorithms that programs have registered

/// Of messages through the sender's envelope, and of bytes as they are copied and reduced.
inline constexpr CostConstants kNodeConstants{
    .latency_seconds = 0.5e-6, .seconds_per_byte = 0.1e-9, .reduce_seconds_per_byte = 0.1e-9};

/// How long a call takes whose buffers all members can address: two waits, and the bytes that a member moves.
[[nodiscard]] double built_in_seconds(const CallShape& call, const CostConstants& constants);

// ---- the execution (execute.cpp)

/// The whole collective of one member. `call` must outlive it.
Task<> execute(Endpoint& endpoint, const CollectiveCall& call);

/// The same for a caller that waits at once: small calls run without a coroutine.
void execute_now(Endpoint& endpoint, const CollectiveCall& call);

/// A collective by this protocol, whatever its size, where the members' buffers allow it.
Task<> execute_by(Endpoint& endpoint, const CollectiveCall& call, Protocol protocol);

}  // namespace cohort::node
