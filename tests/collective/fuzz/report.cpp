// What cohort-info --report may be given: a file that is no report is an error that names it, and of others
// all that is printed can be made.
#include <stdexcept>

#include <cohort/base/error.h>

#include "collective/record/job_report.h"
#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  try {
    const JobReport report = report_from_json(input, "file");
    static_cast<void>(lines_of(report));
    static_cast<void>(table_of(report));
    const std::string json = to_json(report);
    if (to_json(report_from_json(json, "file")) != json) throw std::logic_error("a report reads differently");
  } catch (const InvalidArgument&) {
    // As it should be.
  }
}

}  // namespace cohort::fuzz
