// The roles of a job's workers: which of the ranks are chief, workers, evaluator and parameter servers. The
// workers of each role get a Bootstrap of their own (chief and workers share one), so a strategy made from
// this resolver trains without the other roles.
//
//     RoleClusterResolver roles(session, "chief=1,worker=2,evaluator=1");
//     if (roles.task_type() == "evaluator") return evaluate(OneDeviceStrategy());
//     MultiWorkerMirroredStrategy strategy(roles);
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include <cohort/cluster/bootstrap.h>
#include <cohort/cluster/cluster_resolver.h>
#include <cohort/cluster/cluster_roles.h>

namespace cohort {

/// A cluster as one process sees it, and the process's own task in it.
struct ClusterPlace {
  ClusterSpec spec = {};
  ClusterTask task = {};
};

class RoleClusterResolver final : public ClusterResolver {
 public:
  static constexpr bool kOwnsBootstrap = true;

  /// Ranks take the tasks in this order: with `ps=1,worker=3`, rank 0 is the `ps`. Collective; `session`, an
  /// mpi::Session, outlives the resolver.
  /// @throws InvalidArgument on all of them, naming the worker, for text of another form, a number of tasks
  /// that is not the job's number of workers, and texts that differ.
  RoleClusterResolver(Bootstrap& session, std::string_view roles);

  /// Each process has the task that `description` gives it, as a TfConfigClusterResolver does. Collective.
  /// @throws InvalidArgument on all of them, naming workers with the same task, with one that is not in the
  /// cluster, or with a cluster of their own.
  RoleClusterResolver(Bootstrap& session, const ClusterResolver& description);

  /// The same, with a description that is made here: if one process cannot make its own, for example from a
  /// malformed TF_CONFIG, all of them throw its error.
  RoleClusterResolver(Bootstrap& session,
                      const std::function<std::unique_ptr<ClusterResolver>()>& make_description);

  /// Has the job `evaluator` if, and only if, some worker is the evaluator, whom TF_CONFIG need not name.
  [[nodiscard]] ClusterSpec cluster_spec() const override { return place_.spec; }
  [[nodiscard]] std::optional<std::string> task_type() const override { return place_.task.type; }
  [[nodiscard]] std::optional<int> task_id() const override { return place_.task.id; }

  /// The workers that this task works with. The resolver outlives what is made with it.
  [[nodiscard]] Bootstrap* bootstrap() const override { return group_.get(); }

 private:
  void take_place(Bootstrap& session, const std::function<ClusterPlace()>& find_place);

  ClusterPlace place_;
  std::unique_ptr<Bootstrap> group_;
};

}  // namespace cohort
