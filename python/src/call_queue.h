// The asynchronous collectives of a process group, made one after the other in the order in which the
// program started them, each by a thread that waits for it or by one of the queue's own. What PyTorch hangs
// on the end of a call (Python's callbacks, which may wait for another call) runs while the next one is made.
//
// A blocking collective enters directly where nothing is queued, and costs no thread a change.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace cohort::pytorch {

/// A call that was started.
class QueuedCall {
 public:
  explicit QueuedCall(std::function<void()> body) : body_(std::move(body)) {}
  virtual ~QueuedCall() = default;
  QueuedCall(const QueuedCall&) = delete;
  QueuedCall& operator=(const QueuedCall&) = delete;

  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Once done: what it threw, null where it threw nothing.
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }

 protected:
  /// Something waits for the end of this call that may take long.
  [[nodiscard]] virtual bool has_followers() const noexcept = 0;
  virtual void tell_followers() = 0;

 private:
  friend class CallQueue;
  std::function<void()> body_;
  std::exception_ptr error_;
  std::atomic<bool> done_{false};
};

class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  CallQueue();
  ~CallQueue() = default;
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  /// Makes a blocking call on this thread, after those that are queued.
  template <class Body>
  void run(Body&& body) {
    enter();
    try {
      std::forward<Body>(body)();
    } catch (...) {
      leave();
      throw;
    }
    leave();
  }

  void post(std::shared_ptr<QueuedCall> call);

  /// Makes the calls up to this one, unless another thread does.
  void wait(const QueuedCall& call);
  /// Leaves the work to others. False when the time is over.
  [[nodiscard]] bool wait_for(const QueuedCall& call, std::chrono::milliseconds time);

  /// Makes what is still queued, so that the other members are not left waiting, and ends the threads. Calls
  /// are neither made nor posted any more. In a forked child, which has no such threads, nothing happens.
  void end();

 private:
  using Lock = std::unique_lock<std::mutex>;

  void enter();
  void leave();
  void make_first(Lock& lock);
  void finish_all(Lock& lock);
  void serve();
  void start_thread_if_all_are_busy();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<QueuedCall>> queue_;
  bool making_ = false;   ///< a thread is in a call
  int waiters_ = 0;       ///< threads that wait for `changed_`
  int idle_threads_ = 0;  ///< of the queue's own
  bool ending_ = false;
  const pid_t process_;
  std::vector<std::jthread> threads_;
};

}  // namespace cohort::pytorch
