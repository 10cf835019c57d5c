// Measures what is around the replicas' computing in a training: the Trainer's loop, the logs, and the
// optimizer with its slots on every rank or spread over the ranks.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "environment.h"
#include "run_context.h"

namespace cohort::bench {

/// What a Trainer adds to a step of training over the same loop written by hand: in one process, both loops
/// in turns over the same dataset, so that what else the machine does counts for both.
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

/// What a training pays for its logs: the time of a call of a SummaryWriter that writes an event file, where
/// the caller goes on at once, and that of all the work until it is in the file.
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

/// A training step's optimizer with its slots on every rank, and spread over the ranks (ShardedOptimizer):
/// gradients of a model are summed in place over all ranks, and the variables updated. The two take turns in
/// one run, with gradients that are written anew before each step, and must give the same bits.
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
