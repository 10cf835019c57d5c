#include <cohort/remote/local_cluster.h>

#include <algorithm>
#include <map>

#include <cohort/base/error.h>

#include "introduction.h"
#include "task_listeners.h"

namespace cohort::remote {
namespace {

std::vector<ClusterTask> tasks_of(const std::vector<std::pair<std::string, int>>& jobs) {
  std::map<std::string, ClusterSpec::Tasks, std::less<>> spec;
  std::vector<ClusterTask> tasks;
  for (const auto& [job, count] : jobs) {
    if (count < 1) throw InvalidArgument("the job '{}' has {} tasks; give it at least 1", job, count);
    if (spec.contains(job)) throw InvalidArgument("the job '{}' is given twice", job);
    for (int id = 0; id < count; ++id) {
      spec[job].emplace(id, "");
      tasks.push_back({job, id});
    }
  }
  if (tasks.empty()) throw InvalidArgument("a cluster has at least one task");
  static_cast<void>(is_chief(ClusterSpec(std::move(spec)), tasks.front()));  // throws unless jobs are known
  return tasks;
}

}  // namespace

class LocalCluster::Listeners {
 public:
  std::vector<TaskListeners> of_tasks;
};

LocalCluster::LocalCluster(const std::vector<std::pair<std::string, int>>& jobs)
    : listeners_(std::make_unique<Listeners>()) {
  std::vector<Address> addresses;
  for (const ClusterTask& task : tasks_of(jobs)) {
    listeners_->of_tasks.push_back(listen_for(task, Interfaces::kLoopback));
    addresses.push_back(listeners_->of_tasks.back().address);
  }
  const std::string secret = random_secret();
  for (const TaskListeners& task : listeners_->of_tasks) {
    places_.push_back({.task = task.address.task,
                       .addresses = addresses,
                       .secret = secret,
                       .network_listener = task.network.get(),
                       .local_listener = task.local.get(),
                       .memory = task.memory.get()});
  }
}

LocalCluster::~LocalCluster() = default;

const TaskPlace& LocalCluster::place(const ClusterTask& task) const {
  const auto found = std::ranges::find(places_, task, &TaskPlace::task);
  if (found != places_.end()) return *found;
  throw InvalidArgument("the cluster has no task {}", name_of(task));
}

}  // namespace cohort::remote
