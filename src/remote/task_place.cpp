#include <cohort/remote/task_place.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include <cohort/base/error.h>

#include "cluster/fd.h"

#include "introduction.h"

namespace cohort::remote {
namespace {

watch::Fd duplicate(int descriptor) {
  if (descriptor < 0) return {};
  watch::Fd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw Unavailable("descriptor {} cannot be duplicated: {}", descriptor, std::strerror(errno));
  return copy;
}

}  // namespace

const Address& address_of(const TaskPlace& place, const ClusterTask& task) {
  const auto found = std::ranges::find(place.addresses, task, &Address::task);
  if (found != place.addresses.end()) return *found;
  throw InvalidArgument("the job has no task {}: it has {} tasks", name_of(task), place.addresses.size());
}

EndpointOptions endpoint_options(const TaskPlace& place) {
  watch::Fd network = duplicate(place.network_listener);
  watch::Fd local = duplicate(place.local_listener);
  EndpointOptions options;
  options.task = place.task;
  options.secret = place.secret;
  options.network_listener = network.release();
  options.local_listener = local.release();
  options.offered = place.memory;
  return options;
}

ClusterSpec cluster_spec(const TaskPlace& place) {
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const Address& address : place.addresses) {
    jobs[address.task.type].emplace(address.task.id,
                                    address.network.empty() ? std::string() : address.network.front());
  }
  return ClusterSpec(std::move(jobs));
}

}  // namespace cohort::remote
