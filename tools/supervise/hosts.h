// The supervisors of a job, one per host, as one of them sees the others. The first one leads: it hears how
// tasks end for good, and says when the others are to end theirs.
#pragma once

#include <string>

#include "job.h"

namespace cohort::supervise {

/// What the tasks that still run are to do.
enum class Phase : int {
  kRunning,  ///< go on
  kOver,     ///< end by themselves soon, for nobody needs them any more
  kFailed,   ///< end at once
};

/// What comes from the others, inside `Hosts::poll`.
class HostEvents {
 public:
  virtual ~HostEvents() = default;
  virtual void on_task_end(const ClusterTask& task, const Ending& ending) = 0;
  virtual void on_phase(Phase phase) = 0;
  /// A host has ended, or cannot be reached any more; `why` says so in a sentence.
  virtual void on_host_lost(int host, const std::string& why) = 0;
};

class Hosts {
 public:
  virtual ~Hosts() = default;

  /// Tells the one that leads.
  virtual void report_end(const ClusterTask& task, const Ending& ending) = 0;

  /// Tells all that are led.
  virtual void announce(Phase phase) = 0;

  /// How many of the others there still are.
  [[nodiscard]] virtual int connected() const noexcept = 0;

  /// Hands over what has come, without waiting.
  virtual void poll(HostEvents& events) = 0;
};

}  // namespace cohort::supervise
