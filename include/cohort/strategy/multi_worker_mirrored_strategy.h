// Synchronous training on many workers: one replica per device of each worker, and
// every variable has a component in each replica. All workers make the same strategy at
// the same point of the program.
#pragma once

#include <concepts>
#include <vector>

#include <cohort/cluster/bootstrap.h>
#include <cohort/cluster/cluster_resolver.h>
#include <cohort/collective/communication_options.h>
#include <cohort/strategy/strategy.h>

namespace cohort {

class MultiWorkerMirroredStrategy : public Strategy {
 public:
  /// The workers are those of `bootstrap` (for example an mpi::Session), which must outlive the strategy and
  /// its variables. Replicas are numbered worker by worker. No devices means the GPUs of this worker, in
  /// programs with GPU support: those that it alone sees, or an equal share of those that all workers of its
  /// node see; cpu:0 where no worker sees any.
  /// @throws InvalidArgument on every worker, naming one that has another number of devices than most;
  /// WrongContext for several devices per worker on several nodes, where only one thread may call MPI;
  /// otherwise as MirroredStrategy.
  explicit MultiWorkerMirroredStrategy(Bootstrap& bootstrap, const CommunicationOptions& options = {},
                                       std::vector<Device> devices = {});

  /// The workers are those that the resolver describes; an empty cluster means this process alone.
  /// @throws InvalidArgument when the resolver does not say which task this is, or when the cluster
  /// does not fit the job; Unavailable when it gives no way to reach the other workers.
  explicit MultiWorkerMirroredStrategy(const ClusterResolver& resolver,
                                       const CommunicationOptions& options = {},
                                       std::vector<Device> devices = {});

  template <std::derived_from<ClusterResolver> Resolver>
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): no strategy is a resolver
  explicit MultiWorkerMirroredStrategy(Resolver&&,  // of a temporary: name it, it owns the way to the workers
                                       const CommunicationOptions& options = {},
                                       std::vector<Device> devices = {}) requires(Resolver::kOwnsBootstrap) =
      delete;
};

}  // namespace cohort
