// What the commands and options of cohort-bench are called, and what --help says about them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collective.h"
#include "commands.h"
#include "given_options.h"

namespace cohort::bench {

inline constexpr std::string_view kProfile = "profile";

[[nodiscard]] OptionsDescription sweep_options();
[[nodiscard]] OptionsDescription profile_options();
/// Of sweeps and profiles.
[[nodiscard]] OptionsDescription common_options();

/// All commands, for example `all-reduce, barrier, profile, dispatch, input, ...`.
[[nodiscard]] std::string names_of(std::span<const Collective* const> collectives);

[[nodiscard]] std::string general_help(std::span<const Collective* const> collectives);
[[nodiscard]] std::string help_on(const Collective& collective);
[[nodiscard]] std::string help_on_profile();
[[nodiscard]] std::string help_on(const Command& command);

}  // namespace cohort::bench
