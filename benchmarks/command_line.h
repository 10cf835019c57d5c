// The command line of cohort-bench: `cohort-bench COLLECTIVE [options]` for a sweep over sizes,
// `cohort-bench profile [options]` for a training step, `cohort-bench COMMAND [options]` for the rest.
// Checked completely, so that nothing is measured for a run that could not report its result, and no option
// is taken that would do nothing.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "commands.h"
#include "profile/profile.h"
#include "run_options.h"
#include "sweep/sweep.h"

namespace cohort::bench {

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
