// What a command may use beside its own options.
#pragma once

#include "tick_clock.h"

namespace cohort::mpi {
class Session;
}

namespace cohort::bench {

struct Model;

struct CommandContext {
  mpi::Session& session;
  const TickClock& clock;
  const Model* model = nullptr;  ///< of a command that takes one
};

}  // namespace cohort::bench
