#include "team.h"

#include <algorithm>

#include <cohort/base/error.h>
#include <cohort/mpi/session.h>

#include "remote/introduction.h"
#include "remote/task_card.h"

namespace cohort::supervise {
namespace {

/// Puts the addresses, in whatever order they came, into that of the tasks.
std::vector<remote::Address> in_order(const std::vector<ClusterTask>& tasks,
                                      const std::vector<remote::Address>& found) {
  std::vector<remote::Address> addresses;
  for (const ClusterTask& task : tasks) {
    const auto address = std::ranges::find(found, task, &remote::Address::task);
    if (address == found.end())
      throw InvalidArgument("no supervisor has {}: all need the same --roles", remote::name_of(task));
    addresses.push_back(*address);
  }
  return addresses;
}

void listen(Team& team, const std::vector<ClusterTask>& tasks, remote::Interfaces interfaces) {
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (team.hosts[i] == team.host) team.listeners.push_back(remote::listen_for(tasks[i], interfaces));
}

}  // namespace

Team team_of_one(const std::vector<ClusterTask>& tasks) {
  Team team;
  team.hosts = spread(tasks, 1);
  team.secret = remote::random_secret();
  listen(team, tasks, remote::Interfaces::kLoopback);
  for (const remote::TaskListeners& one : team.listeners) team.addresses.push_back(one.address);
  return team;
}

Team meet(int& argc, char**& argv, const std::vector<ClusterTask>& tasks) {
  mpi::Session session(argc, argv);
  if (session.size() == 1) return team_of_one(tasks);
  Team team;
  HostsOptions& hosts = team.others.emplace();
  team.host = hosts.host = session.rank();
  team.hosts = spread(tasks, session.size());
  listen(team, tasks, remote::Interfaces::kAll);
  hosts.listeners = remote::listen_for({kSupervisorJob, team.host}, remote::Interfaces::kAll);

  std::vector<remote::Address> own{hosts.listeners.address};
  for (const remote::TaskListeners& one : team.listeners) own.push_back(one.address);
  std::vector<remote::Address> of_tasks;
  for (const std::string& blob : session.exchange(remote::addresses_to_json(own))) {
    const std::vector<remote::Address> theirs = remote::addresses_from_json(blob);
    hosts.supervisors.push_back(theirs.front());
    of_tasks.insert(of_tasks.end(), theirs.begin() + 1, theirs.end());
  }
  team.addresses = in_order(tasks, of_tasks);
  team.secret = hosts.secret =
      session.exchange(team.host == 0 ? remote::random_secret() : std::string()).front();
  return team;
}

}  // namespace cohort::supervise
