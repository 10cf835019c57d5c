// What is seen of a call, as one member saw it and for all members of a node together, by those who draw, add
// up or judge what a job does.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collective/record/call_record.h"

namespace cohort {

/// What a member did between its call before and this one, in nanoseconds.
struct TimeAway {
  std::int64_t all = -1;   ///< negative: not known
  std::int64_t input = 0;  ///< of that, waiting for input
  std::int64_t core = 0;   ///< of that, waiting for a core, where members have cores of their own

  /// The less of both, field by field.
  [[nodiscard]] TimeAway least(const TimeAway& other) const noexcept {
    if (!is_known()) return other;
    if (!other.is_known()) return *this;
    return {std::min(all, other.all), std::min(input, other.input), std::min(core, other.core)};
  }
  [[nodiscard]] bool is_known() const noexcept { return all >= 0; }
};

/// A call as one member saw it. Times are in nanoseconds of the chief's steady clock.
struct ObservedCall {
  int worker = -1;
  std::uint64_t number = 0;
  PackedCall call = {};
  std::int64_t arrival = 0;
  std::int64_t node_here = 0;  ///< all members of the node had come
  std::int64_t all_here = 0;   ///< those of all nodes had
  std::int64_t end = 0;
  int last = -1;           ///< the worker that came last of the node
  TimeAway away = {};      ///< from its call before to this one
  std::int64_t input = 0;  ///< that its process had waited for input in all, when it came
};

/// A message that a member sends or receives.
struct ObservedMessage {
  int worker = -1;
  PackedCall call = {};
  double stands_for = 1;  ///< messages of this member, where the reader has missed some
};

/// When the members of one node came to a call: what is needed to find the last of all nodes, and why it was
/// late. Sent as raw bytes: the same program runs everywhere.
struct CallArrivals {
  std::uint64_t number = 0;    ///< of the collective, in its communicator
  std::int64_t last_at = 0;    ///< when the last member came, in nanoseconds of the chief's steady clock
  std::int64_t second_at = 0;  ///< when the last but one came; with a single member 0
  std::int32_t last = -1;      ///< the last member's worker
  std::int32_t members = 0;
  TimeAway away = {};         ///< of the last member
  TimeAway others_away = {};  ///< the least of the others'

  /// With those of another node, whose times are on the same clock.
  [[nodiscard]] CallArrivals merged_with(const CallArrivals& other) const noexcept {
    const bool is_later = last_at >= other.last_at;
    CallArrivals merged = is_later ? *this : other;
    const CallArrivals& earlier = is_later ? other : *this;
    merged.others_away = merged.others_away.least(earlier.away).least(earlier.others_away);
    merged.second_at = std::max(merged.second_at, earlier.last_at);
    merged.members = members + other.members;
    return merged;
  }

  /// By how much the last member came after all others because it was away for longer, in nanoseconds. A
  /// member whose call before has ended later, for its data came later, is late without doing.
  [[nodiscard]] std::int64_t lateness() const noexcept {
    if (members < 2 || !away.is_known() || !others_away.is_known()) return 0;
    return std::clamp<std::int64_t>(away.all - others_away.all, 0,
                                    std::max<std::int64_t>(last_at - second_at, 0));
  }
};

}  // namespace cohort
