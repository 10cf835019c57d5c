#include "team.h"

#include <algorithm>

#include <cohort/base/error.h>
#include <cohort/mpi/session.h>

#include "remote/introduction.h"
#include "remote/task_card.h"
#include "standbys.h"

namespace cohort::supervise {
namespace {

/// What supervisors call the standby of a `ps` when they exchange addresses.
constexpr std::string_view kStandbyJob = "standby";

ClusterTask standby_of(const ClusterTask& server) { return {std::string(kStandbyJob), server.id}; }

const remote::Address& address_in(const std::vector<remote::Address>& addresses, const ClusterTask& task) {
  const auto found = std::ranges::find(addresses, task, &remote::Address::task);
  if (found != addresses.end()) return *found;
  throw InvalidArgument("no supervisor has {}: all need the same --roles and --copies",
                        remote::name_of(task));
}

/// Puts the addresses, in whatever order they came, into that of the tasks. Who looks for a server finds its
/// standby, too, of which nobody hears before it has taken over.
std::vector<remote::Address> in_order(const std::vector<ClusterTask>& tasks,
                                      const std::vector<int>& standby_hosts,
                                      const std::vector<remote::Address>& found) {
  std::vector<remote::Address> addresses;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    remote::Address& address = addresses.emplace_back(address_in(found, tasks[i]));
    if (standby_hosts[i] == kNoHost) continue;
    const std::vector<std::string>& more = address_in(found, standby_of(tasks[i])).network;
    address.network.insert(address.network.end(), more.begin(), more.end());
  }
  return addresses;
}

void listen(Team& team, const std::vector<ClusterTask>& tasks, remote::Interfaces interfaces) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (team.hosts[i] == team.host) team.listeners.push_back(remote::listen_for(tasks[i], interfaces));
    if (team.standby_hosts[i] == team.host)
      team.listeners_of_standbys.push_back(remote::listen_for(tasks[i], interfaces));
  }
}

}  // namespace

Team team_of_one(const std::vector<ClusterTask>& tasks) {
  Team team;
  team.hosts = spread(tasks, 1);
  team.standby_hosts.assign(tasks.size(), kNoHost);
  team.secret = remote::random_secret();
  listen(team, tasks, remote::Interfaces::kLoopback);
  for (const remote::TaskListeners& one : team.listeners) team.addresses.push_back(one.address);
  return team;
}

Team meet(int& argc, char**& argv, const std::vector<ClusterTask>& tasks, int copies) {
  mpi::Session session(argc, argv);
  if (session.size() == 1) return team_of_one(tasks);
  Team team;
  HostsOptions& hosts = team.others.emplace();
  team.host = hosts.host = session.rank();
  team.hosts = spread(tasks, session.size());
  team.standby_hosts = copies == 2 ? spread_standbys(tasks, team.hosts, session.size())
                                   : std::vector<int>(tasks.size(), kNoHost);
  listen(team, tasks, remote::Interfaces::kAll);
  hosts.listeners = remote::listen_for({kSupervisorJob, team.host}, remote::Interfaces::kAll);

  std::vector<remote::Address> own{hosts.listeners.address};
  for (const remote::TaskListeners& one : team.listeners) own.push_back(one.address);
  for (const remote::TaskListeners& one : team.listeners_of_standbys) {
    own.push_back(one.address);
    own.back().task = standby_of(one.address.task);
  }
  std::vector<remote::Address> of_tasks;
  for (const std::string& blob : session.exchange(remote::addresses_to_json(own))) {
    const std::vector<remote::Address> theirs = remote::addresses_from_json(blob);
    hosts.supervisors.push_back(theirs.front());
    of_tasks.insert(of_tasks.end(), theirs.begin() + 1, theirs.end());
  }
  team.addresses = in_order(tasks, team.standby_hosts, of_tasks);
  team.secret = hosts.secret =
      session.exchange(team.host == 0 ? remote::random_secret() : std::string()).front();
  return team;
}

}  // namespace cohort::supervise
