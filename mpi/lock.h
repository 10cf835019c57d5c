// The lock around MPI: one thread at a time calls it, whatever thread level the library gave.
// Those who poll use `try_acquire`, so that a thread that has a call to make gets in between.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace cohort::mpi {

class MpiLock {
 public:
  /// The right to call MPI, for as long as it lives.
  using Guard = std::unique_lock<std::mutex>;

  /// Made by the thread that initialised MPI; below MPI_THREAD_SERIALIZED only that thread may acquire it.
  explicit MpiLock(int thread_level);

  /// @throws WrongContext on a thread that may not call MPI, and once MPI has been finalised.
  [[nodiscard]] Guard acquire();

  /// From here on nobody may call MPI, which has been finalised. The caller has the guard.
  void close() noexcept { closed_.store(true, std::memory_order_relaxed); }

  /// An empty guard when another thread has it or waits for it. @throws as `acquire`.
  [[nodiscard]] Guard try_acquire();

  /// Whether all threads may acquire it.
  [[nodiscard]] bool any_thread() const noexcept;

 private:
  void require_thread() const;
  void require_open() const;

  std::mutex mutex_;
  std::atomic<int> waiting_{0};
  std::atomic<bool> closed_{false};
  int thread_level_;
  std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace cohort::mpi
