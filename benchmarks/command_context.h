// What a command may use beside its own options.
#pragma once

#include <chrono>

#include "tick_clock.h"

namespace cohort::mpi {
class Session;
}

namespace cohort::bench {

struct Model;

struct CommandContext {
  mpi::Session& session;
  const TickClock& clock;
  std::chrono::duration<double> session_took{0};  ///< to be made, MPI_Init included
  const Model* model = nullptr;                   ///< of a command that takes one
};

}  // namespace cohort::bench
