// Measures what a training pays for its logs: the time of a call of a SummaryWriter that writes an event
// file, where the caller goes on at once, and that of all the work until it is in the file.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "command_context.h"
#include "environment.h"
#include "run_options.h"

namespace cohort::bench {

struct SummaryBenchOptions {
  int loops = 15;           ///< per figure, of which the median counts
  std::string folder = {};  ///< for the files, which are removed; empty: the folder for temporary files
};

struct SummaryRow {
  std::string name = {};
  double us = 0;  ///< of a value, median of the loops
};

struct SummaryResult {
  int loops = 0;
  std::vector<SummaryRow> rows;
};

[[nodiscard]] SummaryResult measure(const SummaryBenchOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const SummaryResult& result);

}  // namespace cohort::bench
