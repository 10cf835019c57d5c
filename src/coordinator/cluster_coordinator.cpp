#include <cohort/coordinator/cluster_coordinator.h>

#include "coordinator/coordinator_part.h"
#include "remote/introduction.h"

namespace cohort {
namespace {

std::shared_ptr<coordinator::CoordinatorPart> part_of(const ParameterServerStrategy& strategy,
                                                      const ClusterCoordinatorOptions& options) {
  if (strategy.task().type != "chief")
    throw WrongContext("a ClusterCoordinator is made by the chief, but this task is {}; it calls serve()",
                       remote::name_of(strategy.task()));
  if (options.queue_limit == 0) throw InvalidArgument("ClusterCoordinator: a queue for 0 calls takes none");
  if (!(options.worker_timeout_seconds >= 0))
    throw InvalidArgument("ClusterCoordinator: a worker timeout of {} s; use 0 for none",
                          options.worker_timeout_seconds);
  auto& place = strategy.variables()->coordinator();
  const std::lock_guard lock(place.mutex);
  if (auto part = std::static_pointer_cast<coordinator::CoordinatorPart>(place.part.lock())) return part;
  if (place.is_taken || strategy.variables()->client().connections().job_is_over()) {
    throw WrongContext(
        "the job of this strategy is over: its ClusterCoordinator has ended, and workers and servers with "
        "it; keep a handle of the first one until all work is done");
  }
  auto part = std::make_shared<coordinator::CoordinatorPart>(strategy.variables(), options);
  place.part = part;
  place.is_taken = true;
  return part;
}

}  // namespace

ClusterCoordinator::ClusterCoordinator(const ParameterServerStrategy& strategy,
                                       const ClusterCoordinatorOptions& options)
    : strategy_(strategy), part_(part_of(strategy, options)) {}

std::shared_ptr<const coordinator::RemoteState> ClusterCoordinator::schedule_call(
    coordinator::FunctionNumber function, coordinator::EncodedArguments arguments) const {
  return part_->schedule(function, std::move(arguments));
}

std::shared_ptr<const coordinator::PerWorkerState> ClusterCoordinator::make_per_worker(
    coordinator::FunctionNumber function, coordinator::EncodedArguments arguments) const {
  return part_->make_per_worker(function, std::move(arguments));
}

void ClusterCoordinator::join() const { part_->join(); }

bool ClusterCoordinator::done() const { return part_->done(); }

}  // namespace cohort
