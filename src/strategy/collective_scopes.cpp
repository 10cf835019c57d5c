#include "collective_scopes.h"

#include <cohort/value/context.h>

namespace cohort {

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
