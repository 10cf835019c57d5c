#include "collective_scopes.h"

#include <cohort/base/fingerprint.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/strategy/strategy_extended.h>
#include <cohort/value/context.h>

namespace cohort {
namespace {

/// Tells these barriers from those that replicas make themselves.
constexpr std::uint64_t kTurnOfWorkers = 0x776f726b65727321;

}  // namespace

WorkersTurn::WorkersTurn(StrategyExtended& strategy, const CallPurpose& purpose,
                         std::optional<double> timeout_seconds) {
  if (strategy.workers() == 1 || strategy.local_replicas() == 1) return;
  PurposeOf turn(Fingerprint().add(kTurnOfWorkers).add(purpose.fingerprint()).value(), purpose.caller(),
                 [&purpose] { return purpose.words().purpose; });
  barriers_.reserve(static_cast<std::size_t>(strategy.local_replicas()));
  for (int replica = 0; replica < strategy.local_replicas(); ++replica) {
    Communicator& communicator = strategy.communicator(replica);
    const CommunicationScope scope(communicator, {}, turn);
    barriers_.push_back(communicator.barrier_async({.timeout_seconds = timeout_seconds}));
  }
}

void WorkersTurn::end() {
  for (Work& barrier : barriers_) barrier.wait();
}

ReplicaCollective::ReplicaCollective(StrategyExtended& strategy, int local_replica,
                                     const CommunicationOptions& options, CallPurpose& purpose)
    : communicator_(strategy.communicator(local_replica)),
      scope_(communicator_, options, purpose),
      local_replica_(local_replica),
      run_(current_mode().merge_point) {
  if (run_ != nullptr) run_->begin_collective(local_replica, purpose);
}

ReplicaCollective::~ReplicaCollective() {
  if (run_ != nullptr) run_->end_collective(local_replica_);
}

WorkersCollective::WorkersCollective(StrategyExtended& strategy, CallPurpose& purpose,
                                     std::optional<double> timeout_seconds) {
  if (strategy.workers() == 1) return;
  scope_.emplace(strategy.workers_communicator(), CommunicationOptions{.timeout_seconds = timeout_seconds},
                 purpose);
  turn_.emplace(strategy, purpose, timeout_seconds);
}

void WorkersCollective::end() {
  if (turn_) turn_->end();
}

}  // namespace cohort
