// The commands of cohort-bench that measure something else than a collective: each has options of its own,
// and is described in a file of its own.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"
#include "dispatch/dispatch.h"
#include "given_options.h"
#include "input/input.h"
#include "lines/lines.h"
#include "parameters/parameters.h"
#include "profile/profile.h"
#include "simulate/simulate.h"
#include "start/start.h"
#include "training/sharded_optimizer.h"
#include "training/summary.h"
#include "training/trainer.h"

namespace cohort::bench {

/// For each type there are `measure(options, context)` and, for its result, `write_report`.
using CommandOptions = std::variant<DispatchOptions, InputBenchOptions, CoordinatorOptions, ParametersOptions,
                                    CheckpointBenchOptions, TrainerBenchOptions, SummaryBenchOptions,
                                    ShardedOptimizerOptions, LinesOptions, SimulateOptions, StartOptions>;

enum class CommandRanks { kOne, kAny };

struct Command {
  std::string_view name;
  std::string_view group;  ///< heading in the list of commands
  std::string_view text;   ///< a line of that list
  std::string_view about;  ///< what stands before its options
  CommandRanks ranks = CommandRanks::kOne;
  OptionsDescription (*options)() = nullptr;
  CommandOptions (*parse)(const GivenOptions& given) = nullptr;  ///< throws UsageError
};

// Each is in the folder of what it measures.
Command dispatch_command();
Command input_command();
Command lines_command();
Command simulate_command();
Command start_command();
Command coordinator_command();
Command parameters_command();
Command checkpoint_command();
Command trainer_command();
Command summary_command();
Command sharded_optimizer_command();

/// All, in the order of the help.
[[nodiscard]] std::span<const Command> commands();

/// Null if there is none of this name.
[[nodiscard]] const Command* find_command(std::string_view name);

}  // namespace cohort::bench
