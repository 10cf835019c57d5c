// What a node says when one of its communicators has failed: five lines on standard error, and a file if
// COHORT_REPORT names one.
#pragma once

#include <functional>
#include <string>

#include <cohort/base/error.h>

#include "collective/record/job_report.h"
#include "collective/record/report_latch.h"

namespace cohort::node {

class NodeGroup;

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
