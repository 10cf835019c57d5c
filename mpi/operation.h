// One call of a communicator, from its start until its end. Only the thread that holds
// the gate's pass touches it; others look at `finished()`.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>

namespace cohort::mpi {

class Operation {
 public:
  Operation(const CollectiveCall& call, std::uint64_t sequence, Deadline deadline)
      : call_(call), sequence_(sequence), deadline_(deadline) {}
  virtual ~Operation() = default;

  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  [[nodiscard]] const CollectiveCall& call() const noexcept { return call_.get(); }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] const Deadline& deadline() const noexcept { return deadline_; }

  /// For example `all_reduce #12`: what messages call it.
  [[nodiscard]] std::string name() const {
    return fmt::format("{} #{}", to_string(call_->as_called().kind), sequence_);
  }

  /// True when nothing moves before another member has arrived, so that napping costs little.
  [[nodiscard]] virtual bool waits_for_arrival() const noexcept = 0;

  /// MPI may still read or write memory of the call.
  [[nodiscard]] virtual bool pending_in_mpi() const noexcept = 0;

  [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }

  /// After the end. @throws the Error of the operation, if it has one.
  void require_success() const {
    if (error_) throw_error(error_->code(), error_->what(), error_->origin());
  }

  void finish() { finished_.store(true, std::memory_order_release); }
  void fail(const Error& error) {
    error_ = error;
    finish();
  }

 private:
  const OwnedCall call_;
  const std::uint64_t sequence_;
  const Deadline deadline_;
  std::optional<Error> error_;
  std::atomic<bool> finished_{false};
};

}  // namespace cohort::mpi
