#include "work.h"

#include <string>
#include <thread>
#include <utility>

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

namespace cohort::pytorch {
namespace {

/// Between two looks for a message by a thread that has a limit of its own.
constexpr auto kBetweenLooks = std::chrono::microseconds(50);

[[noreturn]] void throw_not_finished(const WorkLabel& label, std::chrono::milliseconds waited) {
  C10_THROW_ERROR(DistBackendError, fmt::format("{}: not finished after the {} ms that wait() was given; the "
                                                "call goes on and may be waited for again",
                                                c10d::opTypeToString(label.type), waited.count()));
}

}  // namespace

std::exception_ptr exception_being_handled() {
  try {
    throw;
  } catch (const Error& error) {
    try {
      if (error.code() == ErrorCode::kUnimplemented) C10_THROW_ERROR(NotImplementedError, error.what());
      std::string text = error.what();
      // Programs that tell errors apart look for this word.
      if (error.code() == ErrorCode::kDeadlineExceeded)
        text += " (a timeout of the process group or of the call)";
      C10_THROW_ERROR(DistBackendError, std::move(text));
    } catch (...) {
      return std::current_exception();
    }
  } catch (...) {
    return std::current_exception();
  }
}

// ---- collectives

/// The queue and the Work own it together; it outlives a Work that nobody holds.
class CollectiveWork::Call final : public QueuedCall {
 public:
  Call(std::function<void()> body, std::vector<at::Tensor> outputs, std::function<void()> end_of_record)
      : QueuedCall(std::move(body)), outputs_(std::move(outputs)), end_of_record_(std::move(end_of_record)) {}

  c10::intrusive_ptr<c10::ivalue::Future> future() {
    c10::intrusive_ptr<c10::ivalue::Future> made;
    {
      const std::lock_guard lock(mutex_);
      if (future_) return future_;
      future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
      has_future_.store(true, std::memory_order_relaxed);
      if (!told_) return future_;
      made = future_;
    }
    complete(*made);
    return made;
  }

 private:
  [[nodiscard]] bool has_followers() const noexcept override {
    return has_future_.load(std::memory_order_relaxed);
  }

  void tell_followers() override {
    if (end_of_record_) end_of_record_();
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
      const std::lock_guard lock(mutex_);
      told_ = true;
      future = future_;
    }
    if (future) complete(*future);
  }

  void complete(c10::ivalue::Future& future) {
    if (error())
      future.setError(error());
    else
      future.markCompleted(c10::IValue(outputs_));
  }

  std::vector<at::Tensor> outputs_;
  std::function<void()> end_of_record_;
  std::mutex mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::atomic<bool> has_future_{false};
  bool told_ = false;  ///< the call has ended, and those who waited for it know
};

CollectiveWork::CollectiveWork(const WorkLabel& label, std::shared_ptr<CallQueue> queue,
                               std::vector<at::Tensor> inputs, std::vector<at::Tensor> outputs)
    : Work(label.rank, label.type, label.title, std::move(inputs)),
      label_(label),
      queue_(std::move(queue)),
      outputs_(std::move(outputs)) {}

void CollectiveWork::start(std::function<void()> body) {
  call_ = std::make_shared<Call>(
      [body = std::move(body)] {
        try {
          body();
        } catch (...) {
          std::rethrow_exception(exception_being_handled());
        }
      },
      outputs_, std::move(recordFunctionEndCallback_));
  recordFunctionEndCallback_ = nullptr;
  queue_->post(call_);
}

bool CollectiveWork::isCompleted() { return call_->done(); }

bool CollectiveWork::isSuccess() const { return call_->done() && !call_->error(); }

std::exception_ptr CollectiveWork::exception() const { return call_->done() ? call_->error() : nullptr; }

bool CollectiveWork::wait(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout)
    queue_->wait(*call_);
  else if (!queue_->wait_for(*call_, timeout))
    throw_not_finished(label_, timeout);
  if (call_->error()) std::rethrow_exception(call_->error());
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> CollectiveWork::getFuture() { return call_->future(); }

// ---- messages

MessageWork::MessageWork(const WorkLabel& label, Steps steps)
    : Work(label.rank, label.type, label.title), label_(label), steps_(std::move(steps)) {}

void MessageWork::end(std::exception_ptr error) {
  ended_ = true;
  failure_ = std::move(error);
  steps_.try_finish = nullptr;
  steps_.wait = nullptr;
  steps_.finish = nullptr;
  if (recordFunctionEndCallback_) std::exchange(recordFunctionEndCallback_, nullptr)();
}

bool MessageWork::poll() {
  if (ended_) return true;
  try {
    if (!steps_.try_finish()) return false;
    if (steps_.finish) steps_.finish();
    end(nullptr);
  } catch (...) {
    end(exception_being_handled());
  }
  return true;
}

bool MessageWork::isCompleted() {
  const std::unique_lock lock(moving_, std::try_to_lock);
  return lock && poll();
}

bool MessageWork::isSuccess() const {
  const std::lock_guard lock(moving_);
  return ended_ && !failure_;
}

std::exception_ptr MessageWork::exception() const {
  const std::lock_guard lock(moving_);
  return failure_;
}

int MessageWork::sourceRank() const {
  const std::lock_guard lock(moving_);
  TORCH_CHECK(steps_.source, "this work has no source rank");
  return steps_.source();
}

bool MessageWork::wait(std::chrono::milliseconds timeout) {
  const auto end_of_time = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    {
      const std::lock_guard lock(moving_);
      if (!ended_ && timeout == kNoTimeout && steps_.wait) {
        try {
          steps_.wait();
        } catch (...) {
          end(exception_being_handled());
        }
      }
      if (poll()) {
        if (failure_) std::rethrow_exception(failure_);
        return true;
      }
    }
    if (timeout != kNoTimeout && std::chrono::steady_clock::now() >= end_of_time)
      throw_not_finished(label_, timeout);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace cohort::pytorch
