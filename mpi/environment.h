// What all communicators of a Session share. They co-own it, so it lives as long as any
// of them, also beyond the Session.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include <cohort/base/error.h>

#include "cluster/fault_record.h"
#include "lock.h"
#include "transport/operators.h"

namespace cohort::mpi {

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
