// Finds workers that make a collective of the workers while others' replicas make one of the replicas. If a
// worker has several devices, the two have different communicators, whose calls are not compared, so both
// sides would wait until the deadline. Therefore the thread that makes a collective of the workers also makes
// a barrier of all replicas, on behalf of its own replicas, which are paused. The barrier runs beside the
// collective, and fails at once, on both sides, where replicas call something else.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <cohort/collective/call_purpose.h>
#include <cohort/collective/work.h>

namespace cohort {

class StrategyExtended;

class WorkersTurn {
 public:
  /// Announces that this worker is about to make a collective of the workers for `purpose`, with this
  /// deadline.
  WorkersTurn(StrategyExtended& strategy, const CallPurpose& purpose, std::optional<double> timeout_seconds);

  /// To be called when the collective has ended.
  /// @throws InvalidArgument when it met a collective of replicas, naming the members that differ.
  void end();

 private:
  std::vector<Work> barriers_;  // none where replicas and workers share a communicator
};

}  // namespace cohort
