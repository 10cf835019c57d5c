#include "termination_watcher.h"

#include <utility>

namespace cohort::checkpoint {

TerminationWatcher::TerminationWatcher(std::function<bool()> function, std::chrono::duration<double> interval)
    : function_(std::move(function)), interval_(interval) {
  if (function_) thread_ = std::thread([this] { watch(); });
}

TerminationWatcher::~TerminationWatcher() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

void TerminationWatcher::watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    lock.unlock();
    bool yes = false;
    std::exception_ptr error;
    try {
      yes = function_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (yes) said_yes_ = std::chrono::steady_clock::now();
    error_ = error;
    if (yes || error) {
      function_ = nullptr;  // what it holds is not needed any more
      return;
    }
    stop_.wait_for(lock, interval_, [this] { return stopped_; });
  }
}

std::optional<std::chrono::steady_clock::time_point> TerminationWatcher::said_yes() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  return said_yes_;
}

}  // namespace cohort::checkpoint
