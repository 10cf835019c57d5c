// What all communicators of a Session share: the lock around MPI, what Cohort's dtypes and reduction
// operators are in MPI, and what is known of faults.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/reduce_op.h>

#include "calls.h"
#include "cluster/peer_watch.h"

namespace cohort::mpi {

/// One thread at a time calls MPI, whatever thread level the library gave. Those who poll use `try_acquire`,
/// so that a thread that has a call to make gets in between.
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

/// A type of the same size, for moving elements.
[[nodiscard]] MPI_Datatype storage_type(DType dtype);

/// How MPI combines elements of one dtype with one operator. MEAN is a SUM, divided afterwards.
struct MpiArithmetic {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  bool as_float32 = false;  ///< 16-bit floats whose sum must be rounded once: widen them first
};

/// Keeps the operators that MPI lacks: its MIN and MAX leave open what becomes of NaN and of -0,
/// and sums of narrow integers may saturate.
class Operators {
 public:
  Operators();
  [[nodiscard]] MpiArithmetic arithmetic(DType dtype, ReduceOp op) const;

 private:
  struct Own {
    DType dtype;
    ReduceOp op;
    Op made;
  };
  std::vector<Own> own_;
};

/// Communicators co-own it, so it lives as long as any of them, also beyond the Session.
class MpiEnvironment {
 public:
  explicit MpiEnvironment(int thread_level) : lock_(thread_level) {}

  [[nodiscard]] MpiLock& lock() noexcept { return lock_; }
  [[nodiscard]] const Operators& operators() const noexcept { return operators_; }

  /// The first fault among the other workers, or null.
  [[nodiscard]] const Error* fault() const noexcept {
    return faults_ == nullptr ? nullptr : faults_->fault();
  }

  /// A communicator has failed on this worker: others may never come to the end.
  void note_failure() noexcept { has_failed_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_.load(std::memory_order_relaxed); }

  /// Sets where `fault()` looks. Call it once, while the Session starts, on the Session's thread.
  void set_faults(std::shared_ptr<const FaultRecord> faults) noexcept { faults_ = std::move(faults); }

 private:
  MpiLock lock_;
  Operators operators_;
  std::atomic<bool> has_failed_{false};
  std::shared_ptr<const FaultRecord> faults_;
};

}  // namespace cohort::mpi
