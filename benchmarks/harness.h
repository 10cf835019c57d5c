// Checks and times a collective at one size, with Cohort and with its peer in turns.
//
// Each timed call stands alone: the inputs are rewritten, all ranks meet at a barrier, and
// only then the clock starts. What happened in an iteration is what happened to its slowest
// member, so the ranks' times are combined by their maximum, iteration by iteration, after
// the loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collective.h"
#include "result.h"

namespace cohort::bench {

enum class Inputs {
  kRewritten,  ///< before each call, as a training step does
  kKept,       ///< left alone: flatters what reads a peer's memory, since its caches stay clean
};

[[nodiscard]] constexpr std::string_view to_string(Inputs inputs) {
  return inputs == Inputs::kRewritten ? "rewritten" : "kept";
}

struct HarnessOptions {
  Inputs inputs = Inputs::kRewritten;
  bool check = true;
  std::optional<int> iterations;  ///< unset: as many as a fixed time allows
};

/// One result for Cohort and one for the peer, unless it cannot do this; the same on all ranks.
/// @throws AgreedError when a rank has too little memory.
[[nodiscard]] std::vector<Result> measure(const Collective& collective, const Problem& problem,
                                          const HarnessOptions& options, Communicator& communicator,
                                          const MpiGroup& group);

}  // namespace cohort::bench
