// What is left of a communicator that has failed, on its node: the record of its first error, on which all
// members agree, and the report, which is five lines on standard error, and a file if COHORT_REPORT names
// one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <cohort/base/error.h>

#include "collective/record/job_report.h"

namespace cohort::node {

class NodeGroup;
struct FailureRecord;

/// Makes `error` the one of the record, unless there is one already; true if it now is.
bool write_failure(FailureRecord& record, const Error& error);

/// The error that some member has begun to write.
[[nodiscard]] Error read_failure(const FailureRecord& record);

// ---- the report

/// Sees to it that the members of a node make one report of a failure, and not one each: the loss of a worker
/// ends all communicators that it was in, and what fails soon after a report is taken for its consequence.
/// Lies in the node heap, where all processes of a node use that of one of them; kept for the life of the
/// process.
class ReportLatch {
 public:
  /// This process's own.
  [[nodiscard]] static ReportLatch& of_this_process();

  /// Where it lies in this process's heap; nothing where others cannot see it.
  [[nodiscard]] std::optional<std::uint64_t> offset() const;

  /// The number of the report that the caller is to make, from 1; nothing if one has been made in the last
  /// ten seconds. Any member of the node may call it.
  [[nodiscard]] std::optional<int> claim() noexcept;

 private:
  std::atomic<std::int64_t> last_{0};  ///< when the latest report was begun, by steady_clock; 0: none yet
  std::atomic<int> reports_{0};
};

/// Where the reports of a node go.
struct ReportPlace {
  ReportLatch* latch = nullptr;  ///< the node's
  std::string file_suffix = {};  ///< tells the files of a job's nodes apart; empty where there is one node
  std::function<void(const JobReport&)> on_report = {};  ///< in place of all that; may be null
};

/// The calls of the members of this node, and who else there is.
[[nodiscard]] JobReport make_report(const NodeGroup& group, const Error& error);

/// Makes a report and writes it, unless the node has made one just now. For the member whose error has become
/// the group's. What cannot be written is a warning.
void report_failure(const NodeGroup& group, const Error& error) noexcept;

}  // namespace cohort::node
