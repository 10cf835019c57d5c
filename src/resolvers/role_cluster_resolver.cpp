#include <cohort/resolvers/role_cluster_resolver.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/cluster/cluster_spec_json.h>
#include <cohort/resolvers/mpi_cluster_resolver.h>

#include "list_notations.h"

namespace cohort {
namespace {

/// Chief and workers train together; each other job is on its own.
int color_of(const ClusterTask& task) {
  if (task.type == "evaluator") return 1;
  return task.type == "ps" ? 2 : 0;
}

/// The order within a role.
int key_of(const ClusterSpec& spec, const ClusterTask& task) {
  return task.type == "ps" ? task.id : id_in_cluster(spec, task);
}

ClusterPlace place_by(std::string_view list, const Bootstrap& session) {
  const std::vector<RoleCount> roles = parse_role_list(list);
  std::int64_t tasks = 0;
  for (const RoleCount& role : roles) tasks += role.tasks;
  if (tasks != session.size())
    throw InvalidArgument("roles '{}' are {} tasks, but the job has {} workers", list, tasks, session.size());
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  ClusterTask own;
  int rank = 0;
  for (const RoleCount& role : roles) {
    for (int task = 0; task < role.tasks; ++task, ++rank) {
      jobs[role.job].emplace(task, session.workers()[static_cast<std::size_t>(rank)].host);
      if (rank == session.rank()) own = {role.job, task};
    }
  }
  return {ClusterSpec(std::move(jobs)), std::move(own)};
}

ClusterPlace place_by(const ClusterResolver& description) {
  ClusterPlace place{description.cluster_spec(), {}};
  if (place.spec.empty()) {
    throw InvalidArgument(
        "the resolver describes no cluster; if it reads TF_CONFIG, that variable is not set in this process");
  }
  const std::optional<std::string> type = description.task_type();
  const std::optional<int> id = description.task_id();
  if (!type || !id) {
    throw InvalidArgument(
        "the resolver does not say which task of the cluster this process is; TF_CONFIG says it by an entry "
        "such as \"task\": {{\"type\": \"worker\", \"index\": 0}}");
  }
  place.task = {*type, *id};
  return place;
}

/// Throws on all workers what one of them finds wrong, before any of them waits for it.
void require_no_complaints(std::span<const WorkerInfo> workers, std::span<const std::string> complaints) {
  const auto first =
      std::ranges::find_if(complaints, [](const std::string& complaint) { return !complaint.empty(); });
  if (first == complaints.end()) return;
  const auto alike = std::ranges::count(complaints, *first);
  throw InvalidArgument("{}{}: {}", describe(workers[static_cast<std::size_t>(first - complaints.begin())]),
                        alike == 1 ? "" : fmt::format(" and {} more", alike - 1), *first);
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

/// With the evaluator, if some worker is it: TF_CONFIG leaves it out of the cluster.
ClusterSpec with_evaluator(const ClusterSpec& spec, std::span<const WorkerInfo> workers,
                           std::span<const std::string> tasks) {
  constexpr std::string_view kEvaluator = "evaluator";
  const auto found =
      std::ranges::find_if(tasks, [&](const std::string& task) { return task.starts_with(kEvaluator); });
  if (found == tasks.end() || spec.has_job(kEvaluator)) return spec;
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const std::string& job : spec.jobs()) jobs[job] = spec.tasks(job);
  const int id = std::stoi(found->substr(kEvaluator.size()));
  jobs[std::string(kEvaluator)].emplace(id, workers[static_cast<std::size_t>(found - tasks.begin())].host);
  return ClusterSpec(std::move(jobs));
}

}  // namespace

RoleClusterResolver::RoleClusterResolver(Bootstrap& session, std::string_view roles) {
  take_place(session, [&] { return place_by(roles, session); });
}

RoleClusterResolver::RoleClusterResolver(Bootstrap& session, const ClusterResolver& description) {
  take_place(session, [&] { return place_by(description); });
}

RoleClusterResolver::RoleClusterResolver(
    Bootstrap& session, const std::function<std::unique_ptr<ClusterResolver>()>& make_description) {
  take_place(session, [&] { return place_by(*make_description()); });
}

void RoleClusterResolver::take_place(Bootstrap& session, const std::function<ClusterPlace()>& find_place) {
  std::string complaint;
  try {
    place_ = find_place();
    static_cast<void>(is_chief(place_.spec, place_.task));  // throws unless jobs and task are known
  } catch (const Error& error) {
    complaint = error.what();
  }
  const std::span<const WorkerInfo> workers = session.workers();
  require_no_complaints(workers, session.exchange(complaint));
  require_one_cluster(workers, session.exchange(to_json(place_.spec)));
  const std::vector<std::string> tasks =
      session.exchange(fmt::format("{} {}", place_.task.type, place_.task.id));
  require_own_tasks(workers, tasks);
  place_.spec = with_evaluator(place_.spec, workers, tasks);
  group_ = session.split(color_of(place_.task), key_of(place_.spec, place_.task));
}

ClusterSpec MpiClusterResolver::cluster_spec() const {
  ClusterSpec::Tasks tasks;
  for (const WorkerInfo& worker : session_.workers()) tasks.emplace(worker.rank, worker.host);
  return ClusterSpec({{"worker", std::move(tasks)}});
}

}  // namespace cohort
