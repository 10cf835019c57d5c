// Threads of the library's own. They block all signals, so that a program's handlers run in the program's own
// threads. A std::jthread ends with the object that holds it: its destructor asks it to stop and joins.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace cohort {

/// Starts a thread that takes no signals. `function` may take a std::stop_token.
template <class Function>
[[nodiscard]] std::jthread start_quiet_thread(Function&& function) {
  // A thread begins with the signals that its maker blocks.
  class Blocked {
   public:
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_{};
  };
  const Blocked blocked;
  return std::jthread(std::forward<Function>(function));
}

/// Calls `function` each time `interval` has passed, until stop is requested, which ends the wait at once.
template <class Function>
void every(std::chrono::steady_clock::duration interval, const std::stop_token& stop, Function function) {
  std::mutex mutex;
  std::condition_variable_any wakes;
  std::unique_lock lock(mutex);
  const auto is_over = [&] { return stop.stop_requested(); };
  while (!wakes.wait_for(lock, stop, interval, is_over) && !is_over()) function();
}

}  // namespace cohort
