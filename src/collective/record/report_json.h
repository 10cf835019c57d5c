// A report as a part of other JSON, as a look at a job has one for each communicator.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "job_report.h"

namespace cohort {

[[nodiscard]] nlohmann::ordered_json to_json_value(const JobReport& report);

/// Nothing for a report of another format. @throws what the library throws for JSON that is no report;
/// InvalidArgument for a name in it that there is not.
[[nodiscard]] std::optional<JobReport> report_in(const nlohmann::ordered_json& document);

}  // namespace cohort
