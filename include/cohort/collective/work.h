// A Work is a collective in flight. It co-owns the tensors it moves, so dropping the
// caller's copies is safe. Any thread may wait; waiting twice is free.
//
// A Work ends in exactly one of two ways: its result is in place, or it throws the Error that ended the
// collective. If the deadline has passed, that Error names the members that did not arrive. On a GPU the
// result is in place for work that is queued there after `wait`.
#pragma once

#include <memory>

namespace cohort {

class [[nodiscard]] Work {
 public:
  /// What a communicator implements for its own operations.
  class State {
   public:
    virtual ~State() = default;
    virtual void wait() = 0;
    [[nodiscard]] virtual bool done() noexcept = 0;
  };

  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// Blocks until the collective has ended; on a GPU, until the compute stream is ordered after its end.
  /// @throws Error of the collective: DeadlineExceeded naming the members that are missing,
  /// InvalidArgument naming the member whose call differs, Unavailable naming the worker that is gone.
  void wait() { state_->wait(); }

  /// True once the result is in place, or `wait()` throws.
  [[nodiscard]] bool done() const noexcept { return state_->done(); }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cohort
