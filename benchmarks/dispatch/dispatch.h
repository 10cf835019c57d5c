// Measures what the strategy layer adds to what replicas do: empty functions, merges, reads
// of variables, reductions of one number, and a step over as many variables as ResNet-50
// has. In one process, without MPI; compared with figures that were measured of the original.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "environment.h"
#include "run_context.h"

namespace cohort::bench {

struct DispatchOptions {
  int loops = 5;  ///< per figure, of which the median counts
};

struct DispatchRow {
  std::string operation = {};
  int devices = 1;
  double ns = 0;                           ///< of one operation, median of the loops
  double allocations = 0;                  ///< calls of operator new per operation, on all threads
  std::optional<double> original_us = {};  ///< of the same in the original, where it was measured
};

struct DispatchResult {
  int loops = 0;
  std::vector<DispatchRow> rows;
};

[[nodiscard]] DispatchResult measure(const DispatchOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const DispatchResult& result);

}  // namespace cohort::bench
