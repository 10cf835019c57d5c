#include <cohort/launch/role_cluster_resolver.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/cluster/cluster_spec_json.h>
#include <cohort/launch/role_list.h>

namespace cohort {
namespace {

/// Chief and workers train together; each other job is on its own.
int color_of(const Task& task) {
  if (task.type == "evaluator") return 1;
  return task.type == "ps" ? 2 : 0;
}

/// The order within a role.
int key_of(const ClusterSpec& spec, const Task& task) {
  return task.type == "ps" ? task.id : id_in_cluster(spec, task);
}

void require_one_cluster(std::span<const WorkerInfo> workers, std::span<const std::string> specs) {
  const auto other =
      std::ranges::find_if(specs, [&](const std::string& spec) { return spec != specs.front(); });
  if (other == specs.end()) return;
  throw InvalidArgument("{} has another cluster than {}: {} and {}",
                        describe(workers[static_cast<std::size_t>(other - specs.begin())]),
                        describe(workers.front()), *other, specs.front());
}

void require_own_tasks(std::span<const WorkerInfo> workers, std::span<const std::string> tasks) {
  std::map<std::string, const WorkerInfo*> owners;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto [owner, is_new] = owners.emplace(tasks[i], &workers[i]);
    if (is_new) continue;
    throw InvalidArgument("{} and {} have the same task, '{}': give each an index of its own",
                          describe(*owner->second), describe(workers[i]), tasks[i]);
  }
}

}  // namespace

RoleClusterResolver::RoleClusterResolver(Bootstrap& session, std::string_view roles) {
  const std::vector<RoleCount> parsed = parse_role_list(roles);
  std::int64_t tasks = 0;
  for (const RoleCount& role : parsed) tasks += role.tasks;
  if (tasks != session.size())
    throw InvalidArgument("roles '{}' are {} tasks, but the job has {} workers", roles, tasks,
                          session.size());
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  int rank = 0;
  for (const RoleCount& role : parsed) {
    for (int task = 0; task < role.tasks; ++task, ++rank) {
      jobs[role.job].emplace(task, session.workers()[static_cast<std::size_t>(rank)].host);
      if (rank == session.rank()) task_ = {role.job, task};
    }
  }
  spec_ = ClusterSpec(std::move(jobs));
  join(session);
}

RoleClusterResolver::RoleClusterResolver(Bootstrap& session, const ClusterResolver& description)
    : spec_(description.cluster_spec()) {
  task_ = {description.task_type().value_or(""), description.task_id().value_or(-1)};
  join(session);
}

void RoleClusterResolver::join(Bootstrap& session) {
  const std::vector<std::string> tasks = session.exchange(fmt::format("{} {}", task_.type, task_.id));
  const std::vector<std::string> specs = session.exchange(to_json(spec_));
  require_one_cluster(session.workers(), specs);
  require_own_tasks(session.workers(), tasks);
  static_cast<void>(is_chief(spec_, task_));  // throws unless jobs and task are known
  group_ = session.split(color_of(task_), key_of(spec_, task_));
}

}  // namespace cohort
