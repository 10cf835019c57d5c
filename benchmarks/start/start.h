// Measures how long the ranks of a job take to begin: MPI_Init, the rest of the Session's constructor, the
// first communicator with its first call, and further communicators. The rank that takes longest counts.
#pragma once

#include <ostream>
#include <string_view>
#include <vector>

#include "environment.h"
#include "run_context.h"

namespace cohort::bench {

struct StartOptions {
  int communicators = 5;  ///< after the first
};

struct StartRow {
  std::string_view phase;
  double ms = 0;  ///< of the slowest rank; of several communicators, the median
};

struct StartResult {
  int communicators = 0;
  std::vector<StartRow> rows;
};

[[nodiscard]] StartResult measure(const StartOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const StartResult& result);

}  // namespace cohort::bench
