#include "standbys.h"

#include <cohort/base/error.h>

#include "job.h"

namespace cohort::supervise {

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
