// Asks a function of the program again and again, on a thread of its own, until it says yes or throws.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace cohort::checkpoint {

class TerminationWatcher {
 public:
  /// An empty function is not asked.
  TerminationWatcher(std::function<bool()> function, std::chrono::duration<double> interval);
  /// Waits for a call that is under way.
  ~TerminationWatcher();
  TerminationWatcher(const TerminationWatcher&) = delete;
  TerminationWatcher& operator=(const TerminationWatcher&) = delete;

  /// When it said yes. @throws what it threw.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> said_yes();

 private:
  void watch();

  std::function<bool()> function_;
  std::chrono::duration<double> interval_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::optional<std::chrono::steady_clock::time_point> said_yes_;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace cohort::checkpoint
