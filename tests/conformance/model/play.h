// Random programs, carried out by the model and by the library, and compared value by value and error by
// error.
#pragma once

#include <cstdint>
#include <functional>

#include <cohort/strategy/strategy.h>

#include "step.h"

namespace cohort::model {

/// What a run of programs needs to know of its processes.
struct Stage {
  Layout layout;
  std::function<Strategy()> make_strategy;  ///< collective over the workers

  /// Whether this is so on any worker. Collective.
  std::function<bool(bool)> on_any_worker = [](bool here) { return here; };
};

/// The seed of the first program: MODEL_SEED where that is set, for a replay, and else a new one.
[[nodiscard]] std::uint64_t seed_of_run();

/// How many programs to play: MODEL_PROGRAMS, or `usual`.
[[nodiscard]] int programs_of_run(int usual);

/// Plays programs with the seeds `seed`, `seed + 1`, ...; reports through GoogleTest where library and model
/// differ, and stops there.
void play(const Stage& stage, std::uint64_t seed, int programs);

}  // namespace cohort::model
