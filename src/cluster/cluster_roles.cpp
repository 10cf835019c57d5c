#include <cohort/cluster/cluster_roles.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

constexpr std::string_view kChief = "chief";
constexpr std::string_view kWorker = "worker";
constexpr std::string_view kEvaluator = "evaluator";
constexpr std::string_view kParameterServer = "ps";

int count(const ClusterSpec& spec, std::string_view job) {
  return spec.has_job(job) ? spec.num_tasks(job) : 0;
}

void require_well_formed(const ClusterSpec& spec) {
  for (const std::string& job : spec.jobs()) {
    if (job != kChief && job != kWorker && job != kEvaluator && job != kParameterServer)
      throw InvalidArgument("the cluster has a job '{}'; jobs are chief, worker, evaluator and ps", job);
  }
  for (const std::string_view job : {kChief, kEvaluator}) {
    if (count(spec, job) > 1)
      throw InvalidArgument("the cluster has {} tasks of the job '{}'; it can have one", count(spec, job),
                            job);
  }
}

void require_task(const ClusterSpec& spec, const ClusterTask& task) {
  require_well_formed(spec);
  if (task.type == kEvaluator && !spec.has_job(kEvaluator)) return;
  static_cast<void>(spec.task_address(task.type, task.id));  // throws unless the task exists
}

[[noreturn]] void refuse_parameter_server(std::string_view task_type) {
  throw InvalidArgument("a task of type '{}' does not train; chief, worker and evaluator do", task_type);
}

}  // namespace

bool is_chief(const ClusterSpec& spec, const ClusterTask& task) {
  require_task(spec, task);
  if (task.type == kChief || task.type == kEvaluator) return true;
  return task.type == kWorker && task.id == 0 && !spec.has_job(kChief);
}

int worker_count(const ClusterSpec& spec, std::string_view task_type) {
  require_well_formed(spec);
  if (task_type == kEvaluator) return spec.num_tasks(kEvaluator);
  if (task_type != kChief && task_type != kWorker) refuse_parameter_server(task_type);
  static_cast<void>(spec.tasks(task_type));  // throws unless the job exists
  return count(spec, kChief) + count(spec, kWorker);
}

int id_in_cluster(const ClusterSpec& spec, const ClusterTask& task) {
  require_task(spec, task);
  if (task.type == kChief) return 0;
  if (task.type == kWorker) return task.id + count(spec, kChief);
  if (task.type == kEvaluator) return task.id;
  refuse_parameter_server(task.type);
}

std::optional<ClusterTask> collective_leader(const ClusterSpec& spec, const ClusterTask& task) {
  require_task(spec, task);
  if (task.type == kEvaluator) return std::nullopt;
  return ClusterTask{std::string(spec.has_job(kChief) ? kChief : kWorker), 0};
}

}  // namespace cohort
