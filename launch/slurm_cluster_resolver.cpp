#include <cohort/launch/slurm_cluster_resolver.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/cluster/bootstrap.h>
#include <cohort/cluster/visible_gpus.h>
#include <cohort/launch/slurm_lists.h>

namespace cohort {
namespace {

// More than any job or node has; who asks for more has a variable that is wrong.
constexpr std::int64_t kMostTasks = 1'000'000;
constexpr int kMostGpusOnNode = 4096;

/// A task before it belongs to a job.
struct Slot {
  std::string host;
  int number_on_host = 0;
};

const std::string& required(const Environment& variables, const char* name) {
  const auto found = variables.find(name);
  if (found != variables.end()) return found->second;
  throw Unavailable(
      "{} is not set: this process is not a task of a Slurm job step; start it with srun, or give the "
      "resolver an mpi::Session",
      name);
}

int required_number(const Environment& variables, const char* name) {
  static_cast<void>(required(variables, name));
  return *number_in(variables, name);
}

/// What `expand` makes of a variable; its errors name the variable.
template <typename Expand>
auto expanded(const Environment& variables, const char* name, Expand expand) {
  const std::string& list = required(variables, name);
  try {
    return expand(list);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument("{}: {}", name, error.what());
  }
}

/// By rank: the tasks of one host after those of the one before.
std::vector<Slot> slots_of_step(const Environment& variables, const SlurmOptions& options) {
  const std::vector<std::string> hosts = expanded(variables, "SLURM_STEP_NODELIST", expand_host_list);
  std::vector<int> tasks(hosts.size(), options.tasks_per_node.value_or(0));
  if (!options.tasks_per_node)
    tasks = expanded(variables, "SLURM_STEP_TASKS_PER_NODE", expand_tasks_per_node);
  if (tasks.size() != hosts.size()) {
    throw InvalidArgument(
        "SLURM_STEP_NODELIST names {} hosts, but SLURM_STEP_TASKS_PER_NODE has the tasks of {}", hosts.size(),
        tasks.size());
  }
  const std::int64_t all = std::accumulate(tasks.begin(), tasks.end(), std::int64_t{0});
  if (all > kMostTasks)
    throw InvalidArgument("the job step has {} tasks; at most {} are possible", all, kMostTasks);
  std::vector<Slot> slots;
  for (std::size_t host = 0; host < hosts.size(); ++host)
    for (int task = 0; task < tasks[host]; ++task) slots.push_back({hosts[host], task});
  return slots;
}

std::vector<Slot> slots_of(const Bootstrap& bootstrap) {
  std::vector<Slot> slots;
  std::map<int, int> tasks_on_node;
  for (const WorkerInfo& worker : bootstrap.workers())
    slots.push_back({worker.host, tasks_on_node[worker.node]++});
  return slots;
}

int most_tasks_on_a_host(const std::vector<Slot>& slots) {
  int most = 0;
  for (const Slot& slot : slots) most = std::max(most, slot.number_on_host + 1);
  return most;
}

int gpus_of_task(int on_node, int tasks, const SlurmOptions& options) {
  if (on_node > kMostGpusOnNode)
    throw InvalidArgument("a node has {} GPUs; at most {} are possible", on_node, kMostGpusOnNode);
  const int of_task = options.gpus_per_task.value_or(on_node / std::max(tasks, 1));
  if (of_task < 0 || on_node < 0 || std::int64_t{of_task} * tasks > on_node) {
    throw InvalidArgument("{} tasks per node with {} GPUs each need {} GPUs, but a node has {}", tasks,
                          of_task, std::int64_t{of_task} * tasks, on_node);
  }
  return of_task;
}

using Jobs = std::map<std::string, int, std::less<>>;

/// Deals the slots to the jobs; `own` becomes the task of rank `rank`.
ClusterSpec deal(const std::vector<Slot>& slots, const Jobs& jobs, const SlurmOptions& options, int rank,
                 Task& own) {
  std::map<std::string, ClusterSpec::Tasks, std::less<>> spec;
  int next = 0;
  for (const auto& [job, tasks] : jobs) {
    for (int task = 0; task < tasks; ++task, ++next) {
      const Slot& slot = slots[static_cast<std::size_t>(next)];
      spec[job].emplace(task, fmt::format("{}:{}", slot.host, options.port_base + slot.number_on_host));
      if (next == rank) own = {job, task};
    }
  }
  return ClusterSpec(std::move(spec));
}

}  // namespace

SlurmClusterResolver::SlurmClusterResolver(SlurmOptions options, const Environment& variables)
    : options_(std::move(options)) {
  const bool by_mpi = options_.bootstrap != nullptr;
  const std::vector<Slot> slots = by_mpi ? slots_of(*options_.bootstrap) : slots_of_step(variables, options_);
  const auto tasks = static_cast<int>(slots.size());
  const int rank = by_mpi ? options_.bootstrap->rank() : required_number(variables, "SLURM_PROCID");
  Jobs jobs = options_.jobs;
  if (jobs.empty())
    jobs.emplace("worker", by_mpi ? tasks : required_number(variables, "SLURM_STEP_NUM_TASKS"));
  const int wanted =
      std::accumulate(jobs.begin(), jobs.end(), 0, [](int sum, const auto& job) { return sum + job.second; });
  if (wanted != tasks)
    throw InvalidArgument("the jobs have {} tasks together, but the job step has {}", wanted, tasks);
  if (rank >= tasks)
    throw InvalidArgument("SLURM_PROCID is {}, but the job step has tasks 0 to {}", rank, tasks - 1);

  const int tasks_on_host = most_tasks_on_a_host(slots);
  const int gpus = options_.gpus_per_node ? *options_.gpus_per_node : visible_gpus(variables).value_or(0);
  gpus_per_task_ = gpus_of_task(gpus, tasks_on_host, options_);
  std::vector<int> own_gpus(static_cast<std::size_t>(gpus_per_task_));
  std::iota(own_gpus.begin(), own_gpus.end(),
            slots[static_cast<std::size_t>(rank)].number_on_host * gpus_per_task_);
  own_gpus_ = fmt::format("{}", fmt::join(own_gpus, ","));
  spec_ = deal(slots, jobs, options_, rank, task_);
  if (options_.auto_set_gpu && gpus > 0) ::setenv("CUDA_VISIBLE_DEVICES", own_gpus_.c_str(), 1);
}

}  // namespace cohort
