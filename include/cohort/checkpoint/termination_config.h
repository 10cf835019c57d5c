// How a PreemptionCheckpointHandler learns that its job is about to be ended, and what it does then. All
// workers use the same values; but for the first three fields, what one of them finds out is enough for all.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <vector>

namespace cohort {

/// The end of this process's job as Slurm tells it, in SLURM_JOB_END_TIME or, where that is not set, to the
/// first rank, by `squeue`, which is given 5 s; nothing elsewhere.
/// @throws InvalidArgument when the variable is no number of seconds.
[[nodiscard]] std::optional<std::chrono::system_clock::time_point> job_end_time();

struct TerminationConfig {
  /// How long training goes on after the first checkpoint, in seconds from the request: then there is a
  /// second one, which loses fewer steps. 0: training ends with the first.
  double grace_period = 0;

  /// Called on every worker when the last checkpoint is on disk. It may leave the program's loop by an
  /// exception of its own; if it returns, or there is none, Preempted is thrown.
  std::function<void()> exit_fn = {};

  /// Saves in place of the checkpoint, on every worker.
  std::function<void()> save_fn = {};

  /// Signals that announce the end: one at one worker is enough. They are handled while the handler lives.
  std::vector<int> signals = {SIGTERM, SIGUSR1, SIGUSR2};

  /// Asked by a thread of its own, whether this worker is about to be ended, until it says so.
  std::function<bool()> termination_watcher_fn = {};
  double watcher_interval_seconds = 1;

  /// When the job is ended in any case. Training ends so many seconds before, or a tenth of the time that
  /// there is at the start if that is less, and the time that a few steps and a checkpoint take.
  std::optional<std::chrono::system_clock::time_point> end_time = job_end_time();
  double seconds_before_end = 60;

  /// Of Preempted: the status with which programs say that they are to be started again.
  int exit_code = 42;
};

}  // namespace cohort
