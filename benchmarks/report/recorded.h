// Results that an earlier run has written, for a page of them, or beside others: nothing is measured.
#pragma once

#include <string>

#include "report.h"
#include "run_context.h"

namespace cohort::bench {

struct RecordedOptions {
  std::string results;  ///< file: a JSON report or a page
};

struct RecordedResult {
  Json report;
};

/// @throws AgreedError when the file cannot be read, or has no report.
[[nodiscard]] RecordedResult measure(const RecordedOptions& options, const CommandContext& context);

}  // namespace cohort::bench
