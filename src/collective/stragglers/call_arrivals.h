// When the members of one node came to a call: what is needed to find the last of all nodes, and why it was
// late. Sent as raw bytes: the same program runs everywhere.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cohort {

/// What a member did between its call before and this one, in nanoseconds.
struct TimeAway {
  std::int64_t all = 0;
  std::int64_t input = 0;  ///< of that, waiting for input

  /// The less of both, field by field.
  [[nodiscard]] TimeAway least(const TimeAway& other) const noexcept {
    return {std::min(all, other.all), std::min(input, other.input)};
  }
};

struct CallArrivals {
  std::uint64_t number = 0;    ///< of the collective, in its communicator
  std::int64_t last_at = 0;    ///< when the last member came, in nanoseconds of the node's steady clock
  std::int64_t second_at = 0;  ///< when the last but one came; with a single member 0
  std::int32_t last = -1;      ///< the last member's worker
  std::int32_t members = 0;
  TimeAway away = {};         ///< of the last member
  TimeAway others_away = {};  ///< the least of the others'; with a single member 0

  /// With those of another node, whose times are on the same clock.
  [[nodiscard]] CallArrivals merged_with(const CallArrivals& other) const noexcept {
    const bool is_later = last_at >= other.last_at;
    CallArrivals merged = is_later ? *this : other;
    const CallArrivals& earlier = is_later ? other : *this;
    const TimeAway others = earlier.members == 1 ? earlier.away : earlier.away.least(earlier.others_away);
    merged.others_away = merged.members == 1 ? others : merged.others_away.least(others);
    merged.second_at = std::max(merged.second_at, earlier.last_at);
    merged.members = members + other.members;
    return merged;
  }

  /// By how much the last member came after all others, in nanoseconds.
  [[nodiscard]] std::int64_t lateness() const noexcept { return members < 2 ? 0 : last_at - second_at; }
};

}  // namespace cohort
