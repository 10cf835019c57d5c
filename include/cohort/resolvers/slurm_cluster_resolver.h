// The cluster of a Slurm job step, from the variables that srun sets for each task, or, with a Bootstrap,
// from MPI: under mpirun inside a batch job, Slurm's variables describe the launcher's daemons.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include <cohort/base/environment.h>
#include <cohort/cluster/cluster_resolver.h>
#include <cohort/cluster/cluster_roles.h>

namespace cohort {

struct SlurmOptions {
  /// Tasks of each job; empty: all are workers. Tasks are dealt to jobs in the order of their names.
  std::map<std::string, int, std::less<>> jobs = {};
  int port_base = 8888;  ///< of a node's first task; the next ones count up

  /// Unset: as many as CUDA_VISIBLE_DEVICES or SLURM_GPUS_ON_NODE name, otherwise none.
  std::optional<int> gpus_per_node = {};
  std::optional<int> gpus_per_task = {};   ///< unset: gpus_per_node shared by a node's tasks
  std::optional<int> tasks_per_node = {};  ///< unset: SLURM_STEP_TASKS_PER_NODE

  /// On nodes with GPUs for every task, leave only the task's own in CUDA_VISIBLE_DEVICES; make the resolver
  /// before anything uses CUDA. Where Slurm has done so already (`--gpus-per-task`, `--gpu-bind`), its choice
  /// stays, unless the options above say otherwise.
  bool auto_set_gpu = true;
  std::string rpc_layer = "grpc";
  Bootstrap* bootstrap = nullptr;  ///< an mpi::Session: hosts and ranks are then MPI's
};

class SlurmClusterResolver final : public ClusterResolver {
 public:
  /// @throws Unavailable naming a variable that srun would have set; InvalidArgument for variables or options
  /// that contradict each other, quoting them.
  explicit SlurmClusterResolver(SlurmOptions options = {},
                                const Environment& variables = process_environment());

  [[nodiscard]] ClusterSpec cluster_spec() const override { return spec_; }
  [[nodiscard]] std::optional<std::string> task_type() const override { return task_.type; }
  [[nodiscard]] std::optional<int> task_id() const override { return task_.id; }
  [[nodiscard]] std::string rpc_layer() const override { return options_.rpc_layer; }
  [[nodiscard]] std::map<std::string, int> num_accelerators() const override {
    return {{"GPU", gpus_per_task_}};
  }
  [[nodiscard]] Bootstrap* bootstrap() const override { return options_.bootstrap; }

  /// This task's GPUs, as CUDA_VISIBLE_DEVICES has them: `2,3`.
  [[nodiscard]] const std::string& own_gpus() const& noexcept { return own_gpus_; }
  [[nodiscard]] std::string own_gpus() && { return std::move(own_gpus_); }

 private:
  SlurmOptions options_;
  ClusterSpec spec_;
  ClusterTask task_;
  int gpus_per_task_ = 0;
  std::string own_gpus_;
};

}  // namespace cohort
