// Reads a member's record while its owner may be writing to it, or after the owner was killed.
#pragma once

#include <cstdint>

#include "job_report.h"
#include "member_record.h"

namespace cohort {

/// What stamps are compared with.
struct StampScale {
  std::uint64_t now = 0;
  double seconds_per_tick = 0;

  /// Of this process's StampClock, at this moment.
  [[nodiscard]] static StampScale at_this_moment();

  /// 0 for a stamp that was taken since.
  [[nodiscard]] double seconds_since(std::uint64_t stamp) const noexcept {
    return stamp < now ? static_cast<double>(now - stamp) * seconds_per_tick : 0;
  }
};

/// A call without its times; nothing for what no call can be.
[[nodiscard]] std::optional<RecordedCall> unpack(const PackedCall& packed);

/// Fills what the record has: rank, worker, process and calls. Entries that were written meanwhile are
/// counted as torn. False if nobody owns the record yet.
[[nodiscard]] bool read_record(const MemberRecord& record, const StampScale& scale, ReportedMember& member);

}  // namespace cohort
