// What is known when a communicator has failed: the latest calls of all members that can be read, and what
// has become of their processes. A report is data, which is said in five lines, as a table, and as JSON, from
// which it is read again.
//
// Times are in seconds before the report was made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/collective/collective_call.h>

#include "base/system_calls.h"

namespace cohort {

struct RecordedCall {
  CollectiveKind kind = CollectiveKind::kBarrier;
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  Priority priority = Priority::kNormal;
  std::uint64_t number = 0;  ///< of a collective, among those of its communicator
  int tag = 0;               ///< of a message
  int root = 0;              ///< the root, or the other member of a message
  std::uint64_t elements = 0;
  std::string words = {};  ///< what the call is for, if the member waited in it and its program has said so

  double arrived_ago = 0;
  std::optional<double> started_ago = {};  ///< all had announced it; of a small call on one node not recorded
  std::optional<double> ended_ago = {};
  bool ended = false;  ///< a small call on one node ends when its last member arrives: then it has no time
  bool failed = false;

  [[nodiscard]] bool is_open() const noexcept { return !ended && !failed; }
};

/// As messages name it, for example `all_reduce #12 (float32[1000], sum)`.
[[nodiscard]] std::string to_string(const RecordedCall& call);

struct ReportedMember {
  int rank = 0;
  int worker = 0;
  std::string host = {};
  std::int64_t pid = 0;
  bool is_readable = false;  ///< false: of another node, whose own report has its calls
  bool has_left = false;     ///< the communicator, in good order or by an exception
  ProcessState process = ProcessState::kUnknown;
  std::vector<RecordedCall> calls = {};  ///< the oldest first
  std::uint64_t begun = 0;               ///< collectives
  int torn = 0;                          ///< entries that cannot be used, for their writer was in the middle
};

struct JobReport {
  std::string communicator = {};  ///< its name
  std::string time = {};          ///< UTC, for example `2026-01-31T12:00:00.000Z`
  std::string host = {};          ///< on which the report was made
  int worker = 0;                 ///< that made it
  std::string error_code = {};
  std::string error = {};
  std::string error_call = {};               ///< for example `all_reduce #12`; empty: unknown
  int error_member = -1;                     ///< that caused it; -1: unknown
  std::vector<ReportedMember> members = {};  ///< all of the communicator, by rank
  /// A line for each worker or link that made the others wait before, for example `worker 3 (host n1) was
  /// last in 94 % of calls, by 5.1 ms on average: computing, not input or communication`.
  std::vector<std::string> slow = {};
};

/// The oldest collective that the member is in; null: none.
[[nodiscard]] const RecordedCall* open_collective(const ReportedMember& member) noexcept;

/// The message that the member has waited for longest; null: none.
[[nodiscard]] const RecordedCall* open_message(const ReportedMember& member) noexcept;

/// How many collectives the member has finished in sequence: all before the oldest that it is in.
[[nodiscard]] std::uint64_t finished(const ReportedMember& member) noexcept;

// In words.

/// Ranks as ranges: `0-3,5`. Expects them in ascending order.
[[nodiscard]] std::string ranges_of(std::span<const int> ranks);

/// Members by name: `rank 5 (worker 2, host n1)`, `ranks 0-3,5 (hosts n0, n1)`. Of more than four hosts only
/// the number is given. In ascending order of ranks, and not none.
[[nodiscard]] std::string name_members(std::span<const ReportedMember* const> members);

/// A time with three digits: `0.31 s`, or `31 us` below a millisecond.
[[nodiscard]] std::string in_seconds(double seconds);

/// What has failed; which call all members had finished last; who is in which call since when; who has not
/// arrived; who has died, stopped or left. Members in the same state share an entry. Then, if there was one,
/// who made the others wait before. A few lines that fit a screen however many members there are.
[[nodiscard]] std::vector<std::string> lines_of(const JobReport& report);

/// A table for people, with a row for each member: rank, worker, host, process, how many collectives it has
/// finished, and the call that it is in or was in last. Ends with a newline.
[[nodiscard]] std::string table_of(const JobReport& report);

// As JSON, and back: what COHORT_REPORT names is written so, and cohort-info --report reads it.

/// The version of the format, which a file says first.
inline constexpr int kReportFormat = 1;

/// Ends with a newline. Text that is no UTF-8 has replacement characters.
[[nodiscard]] std::string to_json(const JobReport& report);

/// `name` is what errors call it: the file. @throws InvalidArgument when it is no report, or of another
/// version of the format.
[[nodiscard]] JobReport report_from_json(std::string_view text, std::string_view name);

}  // namespace cohort
