// What a worker's replicas hear of a collective of the workers. Both have a communicator of
// their own where a worker has several devices, and calls on different communicators cannot
// disagree: a worker whose replicas wait for those of another one, which is in a collective of
// the workers, would do so until the deadline. So the thread that makes the latter also says so
// in the place of its replicas, which are paused, by a barrier of all replicas. It runs beside
// the collective, and fails at once, on both sides, where somebody's replicas call something else.
#pragma once

#include <optional>
#include <vector>

#include <cohort/collective/work.h>

namespace cohort {

class StrategyExtended;

class WorkersTurn {
 public:
  /// Says that this worker is about to make a collective of the workers, which has this deadline.
  explicit WorkersTurn(StrategyExtended& strategy, std::optional<double> timeout_seconds = {});

  /// To be called when the collective has ended.
  /// @throws InvalidArgument when it met a collective of replicas, naming the members that differ.
  void end();

 private:
  std::vector<Work> barriers_;  // none where replicas and workers share a communicator
};

}  // namespace cohort
