// A report as a table for people: one row for each member.
#pragma once

#include <string>

#include "job_report.h"

namespace cohort {

/// Rank, worker, host, process, how many collectives it has finished, and the call that it is in or was in
/// last. Ends with a newline.
[[nodiscard]] std::string table_of(const JobReport& report);

}  // namespace cohort
