// cohort-supervise: starts the tasks of a cluster on this host, and looks after them.
#include <unistd.h>

#include <iostream>
#include <memory>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "cluster/launcher_place.h"
#include "job.h"
#include "options.h"
#include "say.h"
#include "supervisor.h"

namespace {

namespace supervise = cohort::supervise;
namespace remote = cohort::remote;

enum ExitStatus { kFailure = 1, kUsage = 2 };

std::vector<remote::TaskListeners> listen_for(const std::vector<cohort::ClusterTask>& tasks) {
  std::vector<remote::TaskListeners> listeners;
  for (const cohort::ClusterTask& task : tasks)
    listeners.push_back(remote::listen_for(task, remote::Interfaces::kLoopback));
  return listeners;
}

int supervise_alone(supervise::SupervisorOptions options) {
  std::vector<remote::TaskListeners> listeners = listen_for(options.tasks);
  for (const remote::TaskListeners& one : listeners) options.addresses.push_back(one.address);
  options.hosts.assign(options.tasks.size(), 0);
  options.secret = remote::random_secret();
  return supervise::Supervisor(std::move(options), std::move(listeners), nullptr).run();
}

int supervise_as(const supervise::Options& options) {
  supervise::SupervisorOptions job;
  job.tasks = supervise::tasks_of_roles(options.roles);
  job.restarts = options.restarts;
  job.command = {options.program, supervise::variables_of_tasks()};
  return supervise_alone(std::move(job));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string answer;
    const auto options = supervise::parse_options({argv + 1, argv + argc}, answer);
    if (options) return supervise_as(*options);
    std::cout << answer;
    return 0;
  } catch (const cohort::InvalidArgument& error) {
    // Under a launcher all say the same.
    if (cohort::is_first_rank()) supervise::say(fmt::format("{}; see --help", error.what()));
    return kUsage;
  } catch (const cohort::Error& error) {
    supervise::say(error.what());
    return kFailure;
  }
}
