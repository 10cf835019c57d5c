// The role of a task in its cluster, which follows from the names of jobs: `chief`, `worker`, `evaluator` and
// `ps`. Without a job `chief`, worker 0 is the chief.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <cohort/cluster/cluster_spec.h>

namespace cohort {

/// One task of a cluster.
struct ClusterTask {
  std::string type = {};
  int id = 0;

  friend bool operator==(const ClusterTask&, const ClusterTask&) = default;
};

/// All of these throw InvalidArgument for a job of another name, more than one chief or evaluator, and a
/// task that the cluster does not have. An evaluator need not be in the cluster.

/// Whether the task writes checkpoints and summaries. An evaluator does that for itself.
[[nodiscard]] bool is_chief(const ClusterSpec& spec, const ClusterTask& task);

/// How many tasks train together with this one: chief and workers.
/// @throws InvalidArgument for a `ps`, which does not train.
[[nodiscard]] int worker_count(const ClusterSpec& spec, std::string_view task_type);

/// The task's number among those that it works with: the chief first, then the workers.
/// @throws InvalidArgument for a `ps`.
[[nodiscard]] int id_in_cluster(const ClusterSpec& spec, const ClusterTask& task);

/// The task that leads collectives: the chief or worker 0. Nothing for an evaluator, which takes no part.
[[nodiscard]] std::optional<ClusterTask> collective_leader(const ClusterSpec& spec, const ClusterTask& task);

}  // namespace cohort
