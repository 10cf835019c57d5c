// The command line of cohort-bench: `cohort-bench COLLECTIVE [options]` for a sweep over sizes,
// `cohort-bench profile [options]` for a training step, `cohort-bench dispatch [options]` for
// what the strategy layer costs, `cohort-bench input [options]` for the input pipeline,
// `cohort-bench coordinator [options]` and `cohort-bench parameters [options]` for parameter
// servers. Checked completely, so that nothing is measured for a run that could not report its result, and no
// option is taken that would do nothing.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"
#include "dispatch/dispatch.h"
#include "input/input.h"
#include "parameters/parameters.h"
#include "profile/profile.h"
#include "run_options.h"
#include "sweep/sweep.h"
#include "training/sharded_optimizer.h"
#include "training/trainer.h"

namespace cohort::bench {

/// This is all that was asked for.
struct HelpText {
  std::string text;
};

struct CommandLine {
  RunOptions run = {};
  std::variant<HelpText, SweepOptions, ProfileOptions, DispatchOptions, InputBenchOptions, CoordinatorOptions,
               CheckpointBenchOptions, ParametersOptions, TrainerBenchOptions, ShardedOptimizerOptions>
      task = {};
};

/// `arguments` are those after the program's name.
/// @throws UsageError saying what is wrong, where, and what to do.
[[nodiscard]] CommandLine parse_command_line(const std::vector<std::string>& arguments,
                                             std::span<const Collective* const> collectives);

}  // namespace cohort::bench
