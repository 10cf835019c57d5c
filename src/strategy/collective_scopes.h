// The collectives of a strategy, from their beginning to their end. Each says what it is for, so that
// replicas and workers that make different ones end in an error that names both.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <cohort/collective/call_purpose.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/collective/work.h>
#include <cohort/strategy/strategy_extended.h>
#include <cohort/value/detail/variable_owner.h>

namespace cohort {

/// Finds workers that make a collective of the workers while others' replicas make one of the replicas. If a
/// worker has several devices, the two have different communicators, whose calls are not compared, so both
/// sides would wait until the deadline. Therefore the thread that makes a collective of the workers also
/// makes a barrier of all replicas, on behalf of its own replicas, which are paused. The barrier runs beside
/// the collective, and fails at once, on both sides, where replicas call something else.
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
