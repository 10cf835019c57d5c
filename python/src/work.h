// What PyTorch gets for a call that was started: a c10d::Work over a collective in the queue
// (CollectiveWork), or over a message (MessageWork). Any thread may wait. Errors of Cohort reach Python as
// DistBackendError, with Cohort's text, which names the call, the rank and the host.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <cohort/base/error.h>
#include <cohort/collective/work.h>

#include "call_queue.h"

namespace cohort::pytorch {

/// The exception being handled, as PyTorch's: a DistBackendError in place of an error of Cohort's.
[[nodiscard]] std::exception_ptr exception_being_handled();

/// Calls `body`, whose errors are thrown as PyTorch's.
template <class Body>
decltype(auto) with_errors_of_pytorch(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error&) {
    std::rethrow_exception(exception_being_handled());
  }
}

/// What all Works say of themselves.
struct WorkLabel {
  int rank = 0;
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = nullptr;  ///< for PyTorch's profiler, for example `cohort:all_reduce`
  std::uint64_t sequence = 0;
  std::chrono::milliseconds timeout{};
};

/// A collective that was started.
class CollectiveWork final : public c10d::Work {
 public:
  CollectiveWork(const WorkLabel& label, std::shared_ptr<CallQueue> queue, std::vector<at::Tensor> inputs,
                 std::vector<at::Tensor> outputs);

  /// Queues it.
  void start(std::function<void()> body);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override { wait(kNoTimeout); }
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return label_.sequence; }
  // Not in all versions of PyTorch.
  // NOLINTNEXTLINE(modernize-use-override)
  std::chrono::milliseconds getTimeout() const { return label_.timeout; }

 private:
  class Call;
  const WorkLabel label_;
  std::shared_ptr<CallQueue> queue_;
  std::vector<at::Tensor> outputs_;
  std::shared_ptr<Call> call_;
};

/// A message that was started, or several of which the first that arrives counts.
class MessageWork final : public c10d::Work {
 public:
  /// Moves the message on; true once it is there. @throws Error of the message. `finish` then puts it in its
  /// place. Neither is called by two threads at once.
  struct Steps {
    std::function<bool()> try_finish;
    std::function<void()> wait;  ///< null: `try_finish` until it is there
    std::function<void()> finish;
    std::function<int()> source;
  };
  MessageWork(const WorkLabel& label, Steps steps);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  void synchronize() override { wait(kNoTimeout); }
  bool wait(std::chrono::milliseconds timeout) override;
  uint64_t getSequencenumber() const override { return label_.sequence; }
  // Not in all versions of PyTorch.
  // NOLINTNEXTLINE(modernize-use-override)
  std::chrono::milliseconds getTimeout() const { return label_.timeout; }

 private:
  bool poll();
  void end(std::exception_ptr error);

  const WorkLabel label_;
  mutable std::mutex moving_;
  Steps steps_;
  bool ended_ = false;
  std::exception_ptr failure_;
};

}  // namespace cohort::pytorch
