#include "gate.h"

#include <thread>

#include <mpi.h>

#include <cohort/base/error.h>

namespace cohort::mpi {

Gate::Gate(int thread_level) : thread_level_(thread_level) {}

Gate::Pass Gate::enter() {
  require_thread();
  ++waiting_;
  Pass pass(mutex_);
  --waiting_;
  return pass;
}

Gate::Pass Gate::try_enter() {
  require_thread();
  if (waiting_.load(std::memory_order_relaxed) == 0) {
    Pass pass(mutex_, std::try_to_lock);
    if (pass) return pass;
  }
  // Who is inside may need this core: MPI gives its own away while it is idle, and who asks again and
  // again does not.
  std::this_thread::yield();
  return {};
}

bool Gate::any_thread() const noexcept { return thread_level_ >= MPI_THREAD_SERIALIZED; }

void Gate::require_thread() const {
  if (any_thread() || std::this_thread::get_id() == owner_) return;
  throw WrongContext(
      "MPI was initialised with thread level {}, so only the thread that made the Session may communicate; "
      "initialise "
      "MPI with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, or let the Session do it",
      thread_level_ == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED");
}

}  // namespace cohort::mpi
