#include "task_processes.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/remote/local_cluster.h>

#include "cluster/sockets.h"
#include "supervised_task.h"

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

constexpr const char* kSetting = "COHORT_TASK_FD";

/// This process's variables, with another card. Made before the fork, after which nothing may allocate.
std::vector<std::string> variables_with(int card) {
  std::vector<std::string> result{fmt::format("{}={}", kSetting, card)};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(fmt::format("{}=", kSetting)))
      result.emplace_back(*variable);
  }
  return result;
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

TaskProcesses::TaskProcesses(int workers, int servers)
    : cluster_({{"chief", 1}, {"worker", std::max(workers, 1)}, {"ps", servers}}) {
  for (int i = 0; i < servers; ++i) start({"ps", i});
  for (int i = 0; i < workers; ++i) start({"worker", i});
}

TaskProcesses::~TaskProcesses() {
  for (const auto& [name, pid] : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

pid_t start_process(const TaskPlace& place) {
  const watch::Fd card = card_file(place);
  std::vector<std::string> variables = variables_with(card.get());
  std::vector<char*> pointers;
  pointers.reserve(variables.size() + 1);
  for (std::string& variable : variables) pointers.push_back(variable.data());
  pointers.push_back(nullptr);
  std::string name = name_of(place.task);
  const std::array<char*, 2> arguments{name.data(), nullptr};
  const pid_t pid = ::fork();
  if (pid < 0) throw Unavailable("{} cannot be started: {}", name, std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int descriptor :
         {card.get(), place.network_listener, place.local_listener, place.memory, place.supervisor}) {
      if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, 0);
    }
    ::execve("/proc/self/exe", arguments.data(), pointers.data());
    ::_exit(EXIT_FAILURE);
  }
  return pid;
}

void TaskProcesses::start(const ClusterTask& task) {
  pids_[name_of(task)] = start_process(cluster_.place(task));
}

void TaskProcesses::signal(const ClusterTask& task, int signal) { ::kill(pids_.at(name_of(task)), signal); }

int TaskProcesses::wait(const ClusterTask& task) {
  const auto place = pids_.find(name_of(task));
  int status = 0;
  ::waitpid(place->second, &status, 0);
  pids_.erase(place);
  return status;
}

ClusterTask TaskProcesses::wait_for_any() {
  siginfo_t ended{};
  ::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
  for (const TaskPlace& place : cluster_.places()) {
    const auto process = pids_.find(name_of(place.task));
    if (process == pids_.end() || process->second != ended.si_pid) continue;
    wait(place.task);
    return place.task;
  }
  throw Internal("process {} has ended, which is none of the tasks", ended.si_pid);
}

void TaskProcesses::kill(const ClusterTask& task) {
  signal(task, SIGKILL);
  wait(task);
}

}  // namespace cohort::remote
