// The collectives of a strategy, from their beginning to their end. Each says what it is for, so that
// replicas and workers that make different ones end in an error that names both.
#pragma once

#include <optional>

#include <cohort/collective/call_purpose.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/strategy/strategy_extended.h>
#include <cohort/value/detail/merge_point.h>

#include "workers_turn.h"

namespace cohort {

/// A collective of all replicas, made by a local replica on the calling thread.
class [[nodiscard]] ReplicaCollective {
 public:
  /// @throws InvalidArgument for options that are not valid.
  ReplicaCollective(StrategyExtended& strategy, int local_replica, const CommunicationOptions& options,
                    CallPurpose& purpose);
  ~ReplicaCollective();

  ReplicaCollective(const ReplicaCollective&) = delete;
  ReplicaCollective& operator=(const ReplicaCollective&) = delete;

  [[nodiscard]] Communicator& communicator() noexcept { return communicator_; }

 private:
  Communicator& communicator_;
  CommunicationScope scope_;
  int local_replica_;
  MergePoint* run_;
};

/// A collective of the workers, made by the thread that drives the strategy; nothing where there is one.
class [[nodiscard]] WorkersCollective {
 public:
  WorkersCollective(StrategyExtended& strategy, CallPurpose& purpose,
                    std::optional<double> timeout_seconds = {});

  WorkersCollective(const WorkersCollective&) = delete;
  WorkersCollective& operator=(const WorkersCollective&) = delete;

  /// To be called when the collective has ended. @throws as WorkersTurn::end.
  void end();

 private:
  // With one worker nothing can differ, and threads outside any scope share the default strategy.
  std::optional<CommunicationScope> scope_;
  std::optional<WorkersTurn> turn_;
};

}  // namespace cohort
