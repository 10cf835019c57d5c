#include "parameters/server_job.h"

#include <algorithm>
#include <string_view>

#include <cohort/base/config.h>
#include <cohort/coordinator/serve.h>
#include <cohort/resolvers/task_cluster_resolver.h>

#include "output.h"

namespace cohort::bench {
namespace {

int count(const remote::TaskPlace& place, std::string_view job) {
  return static_cast<int>(std::ranges::count_if(
      place.addresses, [&](const remote::Address& address) { return address.task.type == job; }));
}

}  // namespace

bool has_tasks() { return config().task_descriptor() >= 0; }

bool is_serving_task() { return has_tasks() && TaskClusterResolver().place().task.type != "chief"; }

int serve_as_task() { return serve(ParameterServerStrategy(TaskClusterResolver().place())); }

JobSize size_of_tasks() {
  const remote::TaskPlace place = TaskClusterResolver().place();
  return {count(place, "worker"), count(place, "ps")};
}

ServerJob::ServerJob(const JobSize& size) : size_(size) {
  if (has_tasks()) {
    size_ = size_of_tasks();
    strategy_.emplace(TaskClusterResolver().place());
  } else {
    processes_.emplace(size.workers, size.servers);
    strategy_.emplace(processes_->chief());
  }
}

ServerJob::~ServerJob() {
  try {
    static_cast<void>(coordinator());  // which tells the tasks, at its end, that the job is over
  } catch (const Error& error) {
    complain(error.what());
  }
}

const std::string& ServerJob::host() const {
  return remote::address_of(strategy_->place(), strategy_->task()).host;
}

std::vector<std::string> ServerJob::hosts_of_servers() const {
  std::vector<std::string> hosts;
  for (const remote::Address& address : strategy_->place().addresses)
    if (address.task.type == "ps") hosts.push_back(address.host);
  return hosts;
}

const ClusterCoordinator& ServerJob::coordinator() {
  if (!coordinator_) coordinator_.emplace(*strategy_);
  return *coordinator_;
}

}  // namespace cohort::bench
