// Measures what a Trainer adds to a step of training over the same loop written by hand: in one process, both
// loops in turns over the same dataset, so that what else the machine does counts for both.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "command_context.h"
#include "environment.h"
#include "run_options.h"

namespace cohort::bench {

struct TrainerBenchOptions {
  int loops = 15;  ///< pairs of loops per figure, of which the median counts
};

struct TrainerRow {
  std::string name = {};
  double by_hand_us = 0;   ///< of a step, median of the loops
  double overhead_us = 0;  ///< median of what each pair differs by
};

struct TrainerResult {
  int loops = 0;
  std::vector<TrainerRow> rows;
};

[[nodiscard]] TrainerResult measure(const TrainerBenchOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const TrainerResult& result);

}  // namespace cohort::bench
