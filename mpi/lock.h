// The gate to MPI: one thread at a time passes, whatever thread level the library gave.
// Those who poll use `try_acquire`, so that whoever has a call to make gets in between.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace cohort::mpi {

class MpiLock {
 public:
  using Guard = std::unique_lock<std::mutex>;

  /// Made by the thread that initialised MPI; below MPI_THREAD_SERIALIZED only it may guard.
  explicit MpiLock(int thread_level);

  /// @throws WrongContext on a thread that may not call MPI.
  [[nodiscard]] Guard acquire();

  /// Whether all threads may guard.
  [[nodiscard]] bool any_thread() const noexcept;

  /// No guard when somebody is inside or waits to get in.
  [[nodiscard]] Guard try_acquire();

 private:
  void require_thread() const;

  std::mutex mutex_;
  std::atomic<int> waiting_{0};
  int thread_level_;
  std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace cohort::mpi
