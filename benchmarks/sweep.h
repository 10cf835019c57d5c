// Measures one collective over a range of sizes, as one member among several.
#pragma once

#include "member.h"
#include "run_options.h"
#include "sweep_options.h"

namespace cohort::bench {

/// What is measured against what, in words.
[[nodiscard]] std::string describe(const SweepOptions& sweep, const RunOptions& run);

/// Called by all members. @throws AgreedError when results are wrong, or a member has too little memory.
void run_sweep(const SweepOptions& options, const RunOptions& run, const Member& member);

}  // namespace cohort::bench
