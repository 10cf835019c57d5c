// The command line of cohort-bench: `cohort-bench COLLECTIVE [options]` for a sweep over sizes,
// `cohort-bench profile [options]` for a training step, `cohort-bench COMMAND [options]` for the rest.
// Checked completely, so that nothing is measured for a run that could not report its result, and no option
// is taken that would do nothing. And the commands, which measure something else than a collective: each has
// options of its own, and is described in a file of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"
#include "dispatch/dispatch.h"
#include "given_options.h"
#include "input/input.h"
#include "lines/lines.h"
#include "parameters/parameters.h"
#include "profile/profile.h"
#include "report/recorded.h"
#include "run_context.h"
#include "simulate/simulate.h"
#include "start/start.h"
#include "sweep/sweep.h"
#include "training/training.h"

namespace cohort::bench {

/// For each type there are `measure(options, context)` and, for its result, `write_report`.
using CommandOptions =
    std::variant<DispatchOptions, InputBenchOptions, CoordinatorOptions, ParametersOptions,
                 CheckpointBenchOptions, TrainerBenchOptions, SummaryBenchOptions, ShardedOptimizerOptions,
                 LinesOptions, SimulateOptions, StartOptions, RecordedOptions>;

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
Command report_command();

/// All, in the order of the help.
[[nodiscard]] std::span<const Command> commands();

/// Null if there is none of this name.
[[nodiscard]] const Command* find_command(std::string_view name);

/// This is all that was asked for.
struct HelpText {
  std::string text;
};

struct CommandTask {
  const Command* command = nullptr;
  CommandOptions options;
};

struct CommandLine {
  RunOptions run = {};
  std::variant<HelpText, SweepOptions, ProfileOptions, CommandTask> task = {};
};

/// `arguments` are those after the program's name.
/// @throws UsageError saying what is wrong, where, and what to do.
[[nodiscard]] CommandLine parse_command_line(const std::vector<std::string>& arguments,
                                             std::span<const Collective* const> collectives);

}  // namespace cohort::bench
