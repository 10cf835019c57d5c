// The options of one collective. Options that are not set cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace cohort {

/// Which of a member's calls go first. Calls of one priority keep their order among themselves.
enum class Priority : std::uint8_t {
  kNormal,
  /// Overtakes normal calls, even one that is under way: after each MiB of it, between nodes after each
  /// message.
  kUrgent,
};
inline constexpr std::size_t kPriorities = 2;

struct CallOptions {
  /// How long this call waits for its members, in seconds; 0 waits for ever. Unset: as long as the
  /// communicator's calls do. Members may differ: the first deadline to pass ends the call on all of them.
  std::optional<double> timeout_seconds = {};

  /// All members must choose alike.
  Priority priority = Priority::kNormal;

  /// Fingerprint of what else the members must agree on, for example how several tensors are laid out in one.
  /// 0 for nothing.
  std::uint64_t layout = 0;
};

}  // namespace cohort
