// The description of a cluster: its jobs and tasks, as a value and as JSON, what follows from a task's job,
// and the names of tasks and workers for others.
#include <cohort/cluster/cluster_spec.h>

#include <charconv>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/cluster/cluster_resolver.h>
#include <cohort/cluster/cluster_roles.h>
#include <cohort/cluster/cluster_spec_json.h>
#include <cohort/cluster/worker.h>

#include "base/json.h"

namespace cohort {

ClusterSpec::ClusterSpec(std::initializer_list<std::pair<const std::string, std::vector<std::string>>> jobs) {
  for (const auto& [job, addresses] : jobs) {
    Tasks& tasks = jobs_[job];
    for (const std::string& address : addresses) tasks.emplace(static_cast<int>(tasks.size()), address);
  }
}

ClusterSpec::ClusterSpec(std::map<std::string, Tasks, std::less<>> jobs) : jobs_(std::move(jobs)) {
  for (const auto& [job, tasks] : jobs_) {
    if (!tasks.empty() && tasks.begin()->first < 0) {
      throw InvalidArgument("job '{}' has task {}; task indices start at 0", job, tasks.begin()->first);
    }
  }
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& entry : jobs_) names.push_back(entry.first);
  return names;
}

const ClusterSpec::Tasks& ClusterSpec::tasks(std::string_view job) const& {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    throw InvalidArgument("the cluster has no job '{}'; it has [{}]", job, fmt::join(jobs(), ", "));
  }
  return found->second;
}

const std::string& ClusterSpec::task_address(std::string_view job, int index) const& {
  const Tasks& known = tasks(job);
  const auto found = known.find(index);
  if (found == known.end()) {
    throw InvalidArgument("job '{}' has no task {}; it has {} tasks", job, index, known.size());
  }
  return found->second;
}

namespace {

using Json = nlohmann::json;

constexpr std::string_view kForm = R"({"worker": ["host:port", ...], "ps": {"3": "host:port"}})";

const std::string& address_of(const Json& value, const std::string& job) {
  if (const auto* address = value.get_ptr<const std::string*>()) return *address;
  throw InvalidArgument("job '{}' has the task {}; a task is the address \"host:port\"", job, quote(value));
}

int index_of(const std::string& key, const std::string& job) {
  int index = -1;
  const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (status != std::errc() || end != key.data() + key.size() || index < 0)
    throw InvalidArgument("job '{}' has a task '{}'; tasks are numbered from 0", job, key);
  return index;
}

ClusterSpec::Tasks tasks_of(const Json& value, const std::string& job) {
  ClusterSpec::Tasks tasks;
  if (value.is_array()) {
    for (const Json& address : value) tasks.emplace(static_cast<int>(tasks.size()), address_of(address, job));
  } else if (value.is_object()) {
    for (const auto& [key, address] : value.items())
      tasks.emplace(index_of(key, job), address_of(address, job));
  } else {
    throw InvalidArgument("job '{}' is {}; give a list of addresses, or an object of addresses by index", job,
                          quote(value));
  }
  return tasks;
}

bool has_no_gaps(const ClusterSpec::Tasks& tasks) {
  return tasks.empty() || tasks.rbegin()->first == static_cast<int>(tasks.size()) - 1;
}

}  // namespace

ClusterSpec cluster_spec_from_json(std::string_view json) {
  const Json spec = parse_json<Json>(json, "the cluster", kForm);
  if (!spec.is_object()) throw InvalidArgument("the cluster is {}; write {}", quote(spec), kForm);
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const auto& [job, tasks] : spec.items()) jobs.emplace(job, tasks_of(tasks, job));
  return ClusterSpec(std::move(jobs));
}

std::string to_json(const ClusterSpec& spec) {
  Json json = Json::object();
  for (const std::string& job : spec.jobs()) {
    const ClusterSpec::Tasks& tasks = spec.tasks(job);
    Json& addresses = json[job] = has_no_gaps(tasks) ? Json::array() : Json::object();
    for (const auto& [index, address] : tasks) {
      if (addresses.is_array())
        addresses.push_back(address);
      else
        addresses[std::to_string(index)] = address;
    }
  }
  return json.dump();
}

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

std::string with_rpc_layer(std::string_view layer, std::string_view address) {
  if (layer.empty() || address.empty()) return std::string(address);
  return fmt::format("{}://{}", layer, address);
}

std::string ClusterResolver::master() const {
  const std::optional<std::string> type = task_type();
  const std::optional<int> id = task_id();
  if (!type || !id) throw InvalidArgument("the cluster resolver does not say which task this process is");
  return master(*type, *id);
}

std::string ClusterResolver::master(std::string_view task_type, int task_id) const {
  return with_rpc_layer(rpc_layer(), cluster_spec().task_address(task_type, task_id));
}

std::string SimpleClusterResolver::master() const {
  return with_rpc_layer(options_.rpc_layer, options_.master);
}

std::string describe(const WorkerInfo& worker) {
  return fmt::format("worker {} (host {}, pid {})", worker.rank, worker.host, worker.pid);
}

void number_nodes(std::span<WorkerInfo> workers, std::span<const std::string> machines,
                  int workers_per_node) {
  const int most = workers_per_node > 0 ? workers_per_node : std::numeric_limits<int>::max();
  std::map<std::string, int> counted;
  std::map<std::pair<std::string, int>, int> numbers;  // by machine, and group of workers there
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const int position = counted[machines[i]]++;
    const std::pair group(machines[i], position / most);
    workers[i].node = numbers.try_emplace(group, static_cast<int>(numbers.size())).first->second;
    workers[i].local_rank = position % most;
  }
}

std::vector<WorkerInfo> renumbered(std::span<const WorkerInfo> workers, std::span<const int> ranks) {
  std::vector<WorkerInfo> members;
  std::map<int, int> nodes;
  std::map<int, int> on_node;
  for (const int rank : ranks) {
    WorkerInfo worker = workers[static_cast<std::size_t>(rank)];
    worker.rank = static_cast<int>(members.size());
    worker.node = nodes.try_emplace(worker.node, static_cast<int>(nodes.size())).first->second;
    worker.local_rank = on_node[worker.node]++;
    members.push_back(std::move(worker));
  }
  return members;
}

}  // namespace cohort
