// How a worker learns that it is to end: by a signal, by a function of the program that says so, or by the
// time at which its job ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <cohort/base/environment.h>

namespace cohort::checkpoint {

struct ReceivedSignal {
  int signal = 0;
  std::chrono::steady_clock::time_point at = {};
};

/// Notices signals that ask this process to end soon, and leaves it running. Handlers are per process:
/// several objects, as of workers that are threads, all see a signal. When the last of them is destroyed, the
/// signals are handled as before.
class PreemptionSignals {
 public:
  /// @throws InvalidArgument for a number that is no signal or cannot be handled.
  explicit PreemptionSignals(std::vector<int> signals);
  ~PreemptionSignals();
  PreemptionSignals(const PreemptionSignals&) = delete;
  PreemptionSignals& operator=(const PreemptionSignals&) = delete;

  /// The latest signal since this object was made.
  [[nodiscard]] std::optional<ReceivedSignal> received() const;

  /// From the end of this object on, the signals are ignored: this process ends by itself, and a launcher
  /// that ends all workers when the first one has ended must not change its status.
  void ignore_from_now_on() noexcept { ignored_afterwards_ = true; }

 private:
  void release(std::size_t count);

  std::vector<int> signals_;
  int count_at_start_;
  bool ignored_afterwards_ = false;
};

/// Asks a function of the program again and again, on a thread of its own, until it says yes or throws.
class TerminationWatcher {
 public:
  /// An empty function is not asked.
  TerminationWatcher(std::function<bool()> function, std::chrono::duration<double> interval);
  /// Waits for a call that is under way.
  ~TerminationWatcher() = default;
  TerminationWatcher(const TerminationWatcher&) = delete;
  TerminationWatcher& operator=(const TerminationWatcher&) = delete;

  /// When it said yes. @throws what it threw.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> said_yes();

 private:
  void watch(const std::stop_token& stop);

  std::function<bool()> function_;
  std::chrono::duration<double> interval_;
  std::mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> said_yes_;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace cohort::checkpoint

namespace cohort {

/// When this process's job under Slurm is ended in any case: what `squeue` says of the job of these
/// variables, in seconds since 1970; nothing for a process of no job, a job without an end, and where Slurm
/// does not answer within `limit`, with a warning.
[[nodiscard]] std::optional<std::int64_t> ask_slurm_for_end_time(
    const Environment& variables, std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace cohort
