// Parameter servers keep the variables, and workers train on them, each at its own pace: their updates are
// not synchronised. Every task runs the same program, which `cohort-run --roles chief=1,worker=2,ps=1`
// starts.
//
//     TaskClusterResolver cluster;
//     ParameterServerStrategy strategy(cluster.place());
//     if (strategy.task().type == "ps") return serve(strategy);
//     auto scope = strategy.scope();                    // and now the program for one worker
//
// A Variable that is made in the scope lies on one of the servers, which take turns. Reading it copies its
// value, from wherever it is; assigning to it changes it there. An optimizer sends gradients: the server
// makes the step, and keeps the slots. Chief and workers make the same variables in the same order, and get
// the chief's initial values; without a chief, those of worker 0.
//
// `run` has a replica for each device of this task. What they assign is aggregated first, as in
// CentralStorageStrategy. `num_replicas_in_sync` counts these replicas alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <cohort/remote/task_place.h>
#include <cohort/server/partitioners.h>
#include <cohort/strategy/strategy.h>

namespace cohort {

namespace server {
class ServerVariables;
}

struct ParameterServerOptions {
  std::vector<Device> devices = {};  ///< of this task's replicas; empty: cpu:0

  /// Into how many shards each ShardedVariable is cut (sharded_variable.h), for example
  /// MinSizePartitioner({.max_shards = 2}); empty: one. The same on all tasks.
  Partitioner variable_partitioner = {};

  /// How many steps a task may be ahead of the slowest one, see `end_step`; 0: none, so that all make their
  /// steps together. Unset: tasks do not wait for each other.
  std::optional<std::int64_t> staleness = {};

  /// How long servers let the making of a variable wait while the task is not there that gives the initial
  /// values; 0: for ever.
  double initial_values_timeout_seconds = 600;
};

/// How old the values were that gradients of this task were computed from.
struct GradientStaleness {
  std::uint64_t gradients = 0;  ///< of one variable each
  double mean = 0;              ///< changes of the variable from its last read to the update by the gradient
  std::uint64_t largest = 0;
};

class ParameterServerStrategy : public Strategy {
 public:
  /// Connects to all servers, for which it waits.
  /// @throws InvalidArgument for a cluster without `ps`, without chief or worker, or with an evaluator, which
  /// has a cluster of its own, or for a negative staleness or timeout; Unavailable naming a server that does
  /// not come.
  explicit ParameterServerStrategy(const remote::TaskPlace& place,
                                   const ParameterServerOptions& options = {});

  /// Which task this process is.
  [[nodiscard]] const ClusterTask& task() const& noexcept { return place_.task; }
  [[nodiscard]] ClusterTask task() && noexcept { return std::move(place_.task); }

  /// Ends a step of this task's own training loop. With `staleness`, waits while this task is further ahead
  /// of the slowest. A task that is lost is not waited for; one that is started again begins where the
  /// slowest is.
  void end_step() const;

  /// Of the gradients that this task's optimizers have applied until now, outside of functions that a
  /// coordinator has scheduled.
  [[nodiscard]] GradientStaleness gradient_staleness() const;

  [[nodiscard]] const remote::TaskPlace& place() const& noexcept { return place_; }
  [[nodiscard]] remote::TaskPlace place() && noexcept { return std::move(place_); }

  /// Of the options. Internal.
  [[nodiscard]] double initial_values_timeout_seconds() const noexcept { return initial_values_timeout_; }

  /// Which variables there are; null on a server. Internal.
  [[nodiscard]] const std::shared_ptr<server::ServerVariables>& variables() const noexcept {
    return variables_;
  }

 private:
  ParameterServerStrategy(const remote::TaskPlace& place, const ParameterServerOptions& options,
                          std::shared_ptr<server::ServerVariables> variables);

  remote::TaskPlace place_;
  std::optional<std::int64_t> staleness_;
  double initial_values_timeout_;
  std::shared_ptr<server::ServerVariables> variables_;
};

/// Rows of a variable that a parameter server keeps, in the order of `rows` (int32 or int64, one axis): only
/// these travel. Any other variable is read as a whole.
/// @throws InvalidArgument for a row that the variable does not have.
[[nodiscard]] Tensor embedding_lookup(const Variable& variable, const Tensor& rows);

}  // namespace cohort
