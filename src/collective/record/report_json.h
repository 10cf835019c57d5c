// A report as JSON, and back: what COHORT_REPORT names is written so, and cohort-info --report reads it.
#pragma once

#include <string>
#include <string_view>

#include "job_report.h"

namespace cohort {

/// The version of the format, which a file says first.
inline constexpr int kReportFormat = 1;

/// Ends with a newline. Text that is no UTF-8 has replacement characters.
[[nodiscard]] std::string to_json(const JobReport& report);

/// `name` is what errors call it: the file. @throws InvalidArgument when it is no report, or of another
/// version of the format.
[[nodiscard]] JobReport report_from_json(std::string_view text, std::string_view name);

}  // namespace cohort
