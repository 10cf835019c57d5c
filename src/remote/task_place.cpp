#include <cohort/remote/task_place.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::remote {

const Address& address_of(const TaskPlace& place, const ClusterTask& task) {
  const auto found = std::ranges::find(place.addresses, task, &Address::task);
  if (found != place.addresses.end()) return *found;
  throw InvalidArgument("the job has no task {}: it has {} tasks", name_of(task), place.addresses.size());
}

ClusterSpec cluster_spec(const TaskPlace& place) {
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const Address& address : place.addresses) {
    jobs[address.task.type].emplace(address.task.id,
                                    address.network.empty() ? std::string() : address.network.front());
  }
  return ClusterSpec(std::move(jobs));
}

std::string name_of(const ClusterTask& task) { return fmt::format("{} {}", task.type, task.id); }

}  // namespace cohort::remote
