#include "environment.h"

#include <thread>

#include <mpi.h>

#include <cohort/base/error.h>

namespace cohort::mpi {

MpiLock::MpiLock(int thread_level) : thread_level_(thread_level) {}

MpiLock::Guard MpiLock::acquire() {
  require_thread();
  Guard guard(mutex_, std::try_to_lock);
  if (!guard) {
    ++waiting_;
    guard.lock();
    --waiting_;
  }
  require_open();
  return guard;
}

MpiLock::Guard MpiLock::try_acquire() {
  require_thread();
  if (waiting_.load(std::memory_order_relaxed) == 0) {
    Guard guard(mutex_, std::try_to_lock);
    if (guard) {
      require_open();
      return guard;
    }
  }
  // The thread inside may need this core: MPI yields while it is idle, a thread that asks again and again
  // does not.
  std::this_thread::yield();
  return {};
}

void MpiLock::require_open() const {
  if (!closed_.load(std::memory_order_relaxed)) return;
  throw WrongContext(
      "the Session has ended, and MPI with it: a communicator over several nodes works only while its "
      "Session lives. Destroy what communicates before the Session, or make the Session first");
}

bool MpiLock::any_thread() const noexcept { return thread_level_ >= MPI_THREAD_SERIALIZED; }

void MpiLock::require_thread() const {
  if (any_thread() || std::this_thread::get_id() == owner_) return;
  throw WrongContext(
      "MPI was initialised with thread level {}, so only the thread that made the Session may communicate; "
      "initialise MPI with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, or let the Session do it",
      thread_level_ == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED");
}

}  // namespace cohort::mpi
