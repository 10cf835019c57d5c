#include "call_queue.h"

#include <unistd.h>

#include <utility>

#include <cohort/base/error.h>

#include "base/quiet_thread.h"

namespace cohort::pytorch {
namespace {

/// More would only be needed by callbacks that wait for calls within callbacks of such calls, and so on.
constexpr std::size_t kMostThreads = 8;

}  // namespace

CallQueue::CallQueue() : process_(::getpid()) {}

void CallQueue::end() {
  if (process_ != ::getpid()) {
    // The threads are the parent's: to join or detach them here would be undefined.
    static_cast<void>(new std::vector<std::jthread>(std::move(threads_)));
    return;
  }
  std::vector<std::jthread> threads;
  {
    Lock lock(mutex_);
    finish_all(lock);
    ending_ = true;
    threads = std::move(threads_);
  }
  changed_.notify_all();
  for (std::jthread& thread : threads) {
    // A callback may end what it was called from.
    if (thread.get_id() == std::this_thread::get_id()) thread.detach();
  }
}

/// Until no call is made or waits.
void CallQueue::finish_all(Lock& lock) {
  while (making_ || !queue_.empty()) {
    if (!making_) {
      make_first(lock);
      continue;
    }
    ++waiters_;
    changed_.wait(lock);
    --waiters_;
  }
}

void CallQueue::enter() {
  Lock lock(mutex_);
  finish_all(lock);
  making_ = true;
}

void CallQueue::leave() {
  bool wake = false;
  {
    const Lock lock(mutex_);
    making_ = false;
    wake = waiters_ > 0 || !queue_.empty();
  }
  if (wake) changed_.notify_all();
}

void CallQueue::post(std::shared_ptr<QueuedCall> call) {
  {
    const Lock lock(mutex_);
    queue_.push_back(std::move(call));
    start_thread_if_all_are_busy();
  }
  changed_.notify_all();
}

void CallQueue::start_thread_if_all_are_busy() {
  if (idle_threads_ > 0 || threads_.size() >= kMostThreads || ending_) return;
  ++idle_threads_;
  // It runs callbacks of the program's.
  threads_.push_back(start_program_thread([self = shared_from_this()] { self->serve(); }));
}

/// Makes the first call, without the lock, and then tells those that follow it.
void CallQueue::make_first(Lock& lock) {
  const std::shared_ptr<QueuedCall> call = std::move(queue_.front());
  queue_.pop_front();
  making_ = true;
  lock.unlock();
  try {
    call->body_();
  } catch (...) {
    call->error_ = std::current_exception();
  }
  call->body_ = nullptr;  // and with it the tensors that only the call needed
  lock.lock();
  making_ = false;
  call->done_.store(true, std::memory_order_release);
  const bool has_followers = call->has_followers();
  // A callback may wait for the next call.
  if (has_followers && !queue_.empty()) start_thread_if_all_are_busy();
  lock.unlock();
  changed_.notify_all();
  call->tell_followers();
  lock.lock();
}

void CallQueue::wait(const QueuedCall& call) {
  if (call.done()) return;
  Lock lock(mutex_);
  while (!call.done()) {
    if (!making_ && !queue_.empty()) {
      make_first(lock);
      continue;
    }
    ++waiters_;
    changed_.wait(lock);
    --waiters_;
  }
}

bool CallQueue::wait_for(const QueuedCall& call, std::chrono::milliseconds time) {
  Lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return call.done(); });
}

void CallQueue::serve() {
  Lock lock(mutex_);
  for (;;) {
    while (!ending_ && (making_ || queue_.empty())) changed_.wait(lock);
    if (ending_) return;
    --idle_threads_;
    make_first(lock);
    ++idle_threads_;
  }
}

}  // namespace cohort::pytorch
