// Measures a training step's optimizer with its slots on every rank, and spread over the ranks
// (ShardedOptimizer): gradients of a model are summed in place over all ranks, and the variables updated. The
// two take turns in one run, with gradients that are written anew before each step, and must give the same
// bits.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "command_context.h"
#include "environment.h"
#include "run_options.h"

namespace cohort::bench {

struct ShardedOptimizerOptions {
  std::string model;  ///< CSV file: the model's variables in the order of the forward pass
  int loops = 11;     ///< steps of each kind, of which the median counts
};

/// Times are of the slowest rank, bytes those of the slots of the rank that has the most.
struct ShardedOptimizerRow {
  std::string optimizer = {};
  double replicated_ms = 0;
  double sharded_ms = 0;
  double replicated_bytes = 0;
  double sharded_bytes = 0;

  [[nodiscard]] double ratio() const noexcept { return sharded_ms / replicated_ms; }
};

struct ShardedOptimizerResult {
  std::string model;
  std::size_t elements = 0;
  int ranks = 0;
  int loops = 0;
  std::vector<ShardedOptimizerRow> rows;
};

/// Called by all ranks; the same on all. @throws AgreedError when the variables differ.
[[nodiscard]] ShardedOptimizerResult measure(const ShardedOptimizerOptions& options,
                                             const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ShardedOptimizerResult& result);

}  // namespace cohort::bench
