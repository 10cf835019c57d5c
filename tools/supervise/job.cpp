#include "job.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "resolvers/list_notations.h"

namespace cohort::supervise {
namespace {

/// Each takes three descriptors of its supervisor.
constexpr std::int64_t kMostTasks = 1 << 16;

ClusterSpec spec_of(const std::vector<ClusterTask>& tasks) {
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const ClusterTask& task : tasks) jobs[task.type].emplace(task.id, "");
  return ClusterSpec(std::move(jobs));
}

ClusterTask chief_of(const std::vector<ClusterTask>& tasks) {
  const ClusterSpec spec = spec_of(tasks);
  static_cast<void>(is_chief(spec, tasks.front()));  // throws unless this is a cluster
  if (spec.has_job("chief")) return {"chief", 0};
  if (spec.has_job("worker")) return {"worker", 0};
  throw InvalidArgument("the roles have neither a chief nor a worker, so the job would be over at once");
}

}  // namespace

std::string describe(const Ending& ending) {
  if (ending.signal == 0) return fmt::format("ended with status {}", ending.status);
  const char* name = ::sigabbrev_np(ending.signal);
  return name == nullptr ? fmt::format("was ended by signal {}", ending.signal)
                         : fmt::format("was ended by SIG{}", name);
}

Job::Job(std::vector<ClusterTask> tasks)
    : tasks_(std::move(tasks)), ended_(tasks_.size()), chief_(chief_of(tasks_)) {}

std::size_t Job::index_of(const ClusterTask& task) const {
  const auto found = std::ranges::find(tasks_, task);
  COHORT_CHECK(found != tasks_.end());
  return static_cast<std::size_t>(found - tasks_.begin());
}

void Job::end(const ClusterTask& task, const Ending& ending) {
  if (first_failure_ == 0 && !is_over()) first_failure_ = ending.status;
  ended_[index_of(task)] = true;
  if (task == chief_) end_of_chief_ = ending;
}

bool Job::has_ended(const ClusterTask& task) const { return ended_[index_of(task)]; }

bool Job::is_over() const noexcept {
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (!ended_[i] && tasks_[i].type != kServerJob) return false;
  return true;
}

bool Job::has_failed() const noexcept { return end_of_chief_ && !end_of_chief_->good(); }

std::vector<ClusterTask> Job::stragglers() const {
  std::vector<ClusterTask> tasks;
  if (!end_of_chief_) return tasks;
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (!ended_[i] && tasks_[i].type != kServerJob) tasks.push_back(tasks_[i]);
  return tasks;
}

int Job::exit_status() const noexcept { return has_failed() ? end_of_chief_->exit_status() : first_failure_; }

std::vector<ClusterTask> tasks_of_roles(std::string_view roles) {
  const std::vector<RoleCount> counts = parse_role_list(roles);
  std::int64_t sum = 0;
  for (const RoleCount& role : counts) sum += role.tasks;
  if (sum > kMostTasks)
    throw InvalidArgument("roles '{}' are {} tasks; at most {} are possible", roles, sum, kMostTasks);
  std::vector<ClusterTask> tasks;
  for (const RoleCount& role : counts)
    for (int id = 0; id < role.tasks; ++id) tasks.push_back({role.job, id});
  return tasks;
}

std::vector<int> spread(const std::vector<ClusterTask>& tasks, int hosts) {
  const ClusterTask chief = chief_of(tasks);
  std::vector<int> host_of_task;
  host_of_task.reserve(tasks.size());
  int next = 1;
  for (const ClusterTask& task : tasks) host_of_task.push_back(task == chief ? 0 : next++ % hosts);
  return host_of_task;
}

std::vector<int> spread_standbys(const std::vector<ClusterTask>& tasks, const std::vector<int>& hosts,
                                 int host_count) {
  std::vector<int> standby_hosts(tasks.size(), kNoHost);
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (tasks[i].type == kServerJob && hosts[i] != 0) standby_hosts[i] = (hosts[i] + 1) % host_count;
  return standby_hosts;
}

Standbys::Standbys(std::vector<int> hosts, std::vector<int> standby_hosts) {
  COHORT_CHECK(hosts.size() == standby_hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool has_standby = standby_hosts[i] != kNoHost;
    servers_.push_back({.host = hosts[i],
                        .standby_host = standby_hosts[i],
                        .state = has_standby ? State::kIncomplete : State::kNone});
  }
}

bool Standbys::may_go_alone(std::size_t task, int host) {
  Server& server = servers_.at(task);
  if (server.host != host) return false;
  if (server.state == State::kComplete) server.state = State::kIncomplete;
  return true;
}

void Standbys::copied(std::size_t task, int host) {
  Server& server = servers_.at(task);
  if (server.host == host && server.state == State::kIncomplete) server.state = State::kComplete;
}

void Standbys::lose_host(int host) {
  for (Server& server : servers_)
    if (server.standby_host == host) server.state = State::kLost;
}

void Standbys::take_over(std::size_t task) {
  Server& server = servers_.at(task);
  COHORT_CHECK(server.state == State::kComplete);
  server = {.host = server.standby_host};
}

}  // namespace cohort::supervise
