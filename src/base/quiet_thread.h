// Threads that the library starts. Those that run its own code take no signals that are sent to the process,
// so that a program's handlers run where the program's functions run. A std::jthread ends with the object
// that holds it, whose destructor asks it to stop and joins: so it is the last member, or is joined before
// what it uses is destroyed.
#pragma once

#include <pthread.h>

#include <algorithm>
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
      // Faults of the thread's own come to it in any case: blocked, they would pass by a program's handler.
      for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) sigdelset(&all, fault);
      pthread_sigmask(SIG_BLOCK, &all, &before_);
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

/// Starts a thread that runs functions of the program. These may start processes, which begin with the
/// signals that their maker blocks, and then could not be ended: so it takes signals as the program's own
/// threads do.
template <class Function>
[[nodiscard]] std::jthread start_program_thread(Function&& function) {
  return std::jthread(std::forward<Function>(function));
}

/// Sleeps for so long, and returns true; false as soon as stop is requested.
[[nodiscard]] inline bool sleep_unless_stopped(std::chrono::duration<double> time,
                                               const std::stop_token& stop) {
  constexpr std::chrono::duration<double> kLongest(1e8);  // which a clock can add to its time
  std::mutex mutex;
  std::condition_variable wakes;
  // What std::condition_variable_any does as well, but it takes memory each time.
  const std::stop_callback wake(stop, [&] {
    const std::lock_guard lock(mutex);
    wakes.notify_one();
  });
  std::unique_lock lock(mutex);
  return !wakes.wait_for(lock, std::min(time, kLongest), [&] { return stop.stop_requested(); });
}

}  // namespace cohort
