// What the commands and options of cohort-bench are called, and what --help says about them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <boost/program_options.hpp>

#include "collective.h"

namespace cohort::bench {

// The commands that measure something else than a collective.
inline constexpr std::string_view kProfile = "profile";
inline constexpr std::string_view kDispatch = "dispatch";
inline constexpr std::string_view kInput = "input";
inline constexpr std::string_view kCoordinator = "coordinator";
inline constexpr std::string_view kParameters = "parameters";
inline constexpr std::string_view kCheckpoint = "checkpoint";
inline constexpr std::string_view kShardedOptimizer = "sharded-optimizer";
inline constexpr std::string_view kTrainer = "trainer";

[[nodiscard]] boost::program_options::options_description sweep_options();
[[nodiscard]] boost::program_options::options_description profile_options();
[[nodiscard]] boost::program_options::options_description dispatch_options();
[[nodiscard]] boost::program_options::options_description input_options();
[[nodiscard]] boost::program_options::options_description coordinator_options();
[[nodiscard]] boost::program_options::options_description parameters_options();
[[nodiscard]] boost::program_options::options_description checkpoint_options();
[[nodiscard]] boost::program_options::options_description sharded_optimizer_options();
[[nodiscard]] boost::program_options::options_description trainer_options();
/// Of sweeps and profiles.
[[nodiscard]] boost::program_options::options_description common_options();
/// Of all commands.
[[nodiscard]] boost::program_options::options_description report_options();

/// All commands, for example `all-reduce, barrier, profile, dispatch, input, ...`.
[[nodiscard]] std::string names_of(std::span<const Collective* const> collectives);

[[nodiscard]] std::string general_help(std::span<const Collective* const> collectives);
[[nodiscard]] std::string help_on(const Collective& collective);
[[nodiscard]] std::string help_on_profile();
[[nodiscard]] std::string help_on_dispatch();
[[nodiscard]] std::string help_on_input();
[[nodiscard]] std::string help_on_coordinator();
[[nodiscard]] std::string help_on_parameters();
[[nodiscard]] std::string help_on_checkpoint();
[[nodiscard]] std::string help_on_sharded_optimizer();
[[nodiscard]] std::string help_on_trainer();

}  // namespace cohort::bench
