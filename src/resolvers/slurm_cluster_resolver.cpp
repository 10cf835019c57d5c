#include <cohort/resolvers/slurm_cluster_resolver.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/cluster/bootstrap.h>

#include "cluster/launcher.h"
#include "list_notations.h"

namespace cohort {
namespace {

// More than any job or node has; a larger number means that a variable is wrong.
constexpr std::int64_t kMostTasks = 1'000'000;
constexpr int kMostGpusOnNode = 4096;

/// A task that has not been assigned to a job yet.
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

/// The expanded list of a variable; errors name the variable.
template <typename Expand>
auto expanded(const Environment& variables, const char* name, Expand expand) {
  const std::string& list = required(variables, name);
  try {
    return expand(list);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument("{}: {}", name, error.what());
  }
}

/// Two entries of one host would give different tasks the same port.
void require_different(std::vector<std::string> hosts) {
  std::ranges::sort(hosts);
  const auto twice = std::ranges::adjacent_find(hosts);
  if (twice == hosts.end()) return;
  throw InvalidArgument("SLURM_STEP_NODELIST names the host {} twice; Slurm names each host of a step once",
                        *twice);
}

/// By rank: the tasks of one host after those of the one before.
std::vector<Slot> slots_of_step(const Environment& variables, const SlurmOptions& options) {
  const std::vector<std::string> hosts = expanded(variables, "SLURM_STEP_NODELIST", expand_host_list);
  require_different(hosts);
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

/// What `--gpus-per-task` asked for: `2`, or `volta:3,kepler:1`. Nothing for a text of another form.
std::optional<int> gpus_per_task_of_slurm(const Environment& variables) {
  const auto found = variables.find("SLURM_GPUS_PER_TASK");
  if (found == variables.end()) return std::nullopt;
  int sum = 0;
  std::istringstream list(found->second);
  for (std::string entry; std::getline(list, entry, ',');) {
    const std::size_t colon = entry.rfind(':');
    const char* const begin = entry.data() + (colon == std::string::npos ? 0 : colon + 1);
    const char* const end = entry.data() + entry.size();
    int count = 0;
    const auto [stopped, status] = std::from_chars(begin, end, count);
    if (status != std::errc() || stopped != end || count < 0) return std::nullopt;
    if (count > kMostGpusOnNode - sum) return std::nullopt;
    sum += count;
  }
  return sum;
}

/// Whether Slurm has already left each task its own GPUs: as many as a task should have, or fewer than the
/// step has on this node.
bool are_the_tasks_own(const std::vector<std::string>& listed, const Environment& variables) {
  const auto count = static_cast<int>(listed.size());
  if (gpus_per_task_of_slurm(variables) == count) return true;
  Environment of_slurm = variables;
  of_slurm.erase("CUDA_VISIBLE_DEVICES");
  return count > 0 && count < visible_gpus(of_slurm).value_or(0);
}

/// In the form of CUDA_VISIBLE_DEVICES: its entries, or numbers where it is not set. SLURM_STEP_GPUS and
/// SLURM_JOB_GPUS have the node's numbers instead, which mean nothing to a task that sees only a part of the
/// node.
std::vector<std::string> gpus_of_this_task(const SlurmOptions& options, const Environment& variables,
                                           int tasks_on_host, int number_on_host) {
  std::vector<std::string> listed = listed_gpus(variables).value_or(std::vector<std::string>());
  const bool is_told = options.gpus_per_node || options.gpus_per_task;
  if (!is_told && are_the_tasks_own(listed, variables)) return listed;
  const int on_node = options.gpus_per_node.value_or(visible_gpus(variables).value_or(0));
  const int of_task = gpus_of_task(on_node, tasks_on_host, options);
  std::vector<std::string> own;
  for (int gpu = number_on_host * of_task; gpu < (number_on_host + 1) * of_task; ++gpu) {
    const auto index = static_cast<std::size_t>(gpu);
    own.push_back(index < listed.size() ? listed[index] : fmt::format("{}", gpu));
  }
  return own;
}

using Jobs = std::map<std::string, int, std::less<>>;

/// Assigns the slots to the jobs; `own` becomes the task of rank `rank`.
ClusterSpec deal(const std::vector<Slot>& slots, const Jobs& jobs, const SlurmOptions& options, int rank,
                 ClusterTask& own) {
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

  const std::vector<std::string> gpus = gpus_of_this_task(
      options_, variables, most_tasks_on_a_host(slots), slots[static_cast<std::size_t>(rank)].number_on_host);
  gpus_per_task_ = static_cast<int>(gpus.size());
  own_gpus_ = fmt::format("{}", fmt::join(gpus, ","));
  spec_ = deal(slots, jobs, options_, rank, task_);
  if (options_.auto_set_gpu && !gpus.empty()) ::setenv("CUDA_VISIBLE_DEVICES", own_gpus_.c_str(), 1);
}

}  // namespace cohort
