// A report in words: a few lines that fit a screen however many members there are.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "job_report.h"

namespace cohort {

/// Ranks as ranges: `0-3,5`. Expects them in ascending order.
[[nodiscard]] std::string ranges_of(std::span<const int> ranks);

/// Members by name: `rank 5 (worker 2, host n1)`, `ranks 0-3,5 (hosts n0, n1)`. Of more than four hosts only
/// the number is given. In ascending order of ranks, and not none.
[[nodiscard]] std::string name_members(std::span<const ReportedMember* const> members);

/// A time with three digits: `0.31 s`, or `31 us` below a millisecond.
[[nodiscard]] std::string in_seconds(double seconds);

/// What has failed; which call all members had finished last; who is in which call since when; who has not
/// arrived; who has died, stopped or left. Members in the same state share an entry. Then, if there was one,
/// who made the others wait before.
[[nodiscard]] std::vector<std::string> lines_of(const JobReport& report);

}  // namespace cohort
