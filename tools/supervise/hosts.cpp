#include "hosts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/mpi/session.h>

#include "job.h"
#include "remote/supervised_task.h"

namespace cohort::supervise {
namespace {

/// All have met just before.
constexpr std::chrono::seconds kToConnect{30};

enum Kind : std::uint16_t { kTaskEnd = 1, kPhase = 2, kServerWord = 3 };

/// How a task has ended, on its way to the supervisor that leads; the job's name follows.
struct EndMessage {
  std::int32_t id;
  std::int32_t status;
  std::int32_t signal;
};

struct WordMessage {
  std::int32_t server;
  std::uint32_t word;
};

template <class Message>
std::span<const std::byte> bytes_of(const Message& message) {
  return std::as_bytes(std::span(&message, 1));
}

[[noreturn]] void refuse(const remote::Peer& peer, const remote::Message& message) {
  throw Internal("{} sent a message of kind {} with {} bytes, which means nothing", peer.name(), message.kind,
                 message.body.size());
}

std::chrono::milliseconds milliseconds(std::chrono::duration<double> time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

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

Hosts::Hosts(HostsOptions options) : options_(std::move(options)), peers_(options_.supervisors.size()) {
  remote::EndpointOptions own;
  own.task = {kSupervisorJob, options_.host};
  own.secret = options_.secret;
  own.network_listener = options_.listeners.network.release();
  own.local_listener = options_.listeners.local.release();
  own.heartbeat = milliseconds(config().heartbeat());
  own.silence = milliseconds(config().silence());
  endpoint_ = std::make_unique<remote::Endpoint>(std::move(own), *this);
  const Deadline deadline = Deadline::after(kToConnect);
  if (options_.host == 0)
    gather_all(deadline);
  else
    join(deadline);
}

void Hosts::gather_all(Deadline deadline) {
  const auto others = static_cast<int>(peers_.size()) - 1;
  if (!endpoint_->wait_until([&] { return connected() == others; }, deadline)) {
    const auto missing = std::find(peers_.begin() + 1, peers_.end(), nullptr) - peers_.begin();
    throw Unavailable("the supervisor of host {} has not connected within {} s",
                      options_.supervisors[static_cast<std::size_t>(missing)].host, kToConnect.count());
  }
  announce(Phase::kRunning);
}

void Hosts::join(Deadline deadline) {
  peers_.front() = &endpoint_->connect(options_.supervisors.front(), deadline);
  if (endpoint_->wait_until([&] { return all_are_here_; }, deadline)) return;
  throw Unavailable("{} has not said within {} s that all supervisors have connected", peers_.front()->name(),
                    kToConnect.count());
}

Hosts::~Hosts() = default;

void Hosts::report_end(const ClusterTask& task, const Ending& ending) {
  if (peers_.front() == nullptr) return;
  const EndMessage message{task.id, ending.status, ending.signal};
  const std::array<std::span<const std::byte>, 2> parts{bytes_of(message),
                                                        std::as_bytes(std::span(task.type))};
  peers_.front()->send(kTaskEnd, 0, parts);
}

void Hosts::announce(Phase phase) {
  for (remote::Peer* peer : peers_)
    if (peer != nullptr) peer->send(kPhase, static_cast<std::uint64_t>(phase));
}

void Hosts::tell(int host, const ServerWord& word) {
  remote::Peer* peer = peers_.at(static_cast<std::size_t>(host));
  if (peer == nullptr) return;
  peer->send(kServerWord, word.number,
             bytes_of(WordMessage{word.server, static_cast<std::uint32_t>(word.word)}));
}

const std::string& Hosts::name_of(int host) const {
  return options_.supervisors.at(static_cast<std::size_t>(host)).host;
}

int Hosts::connected() const noexcept {
  return static_cast<int>(std::ranges::count_if(peers_, [](const auto* peer) { return peer != nullptr; }));
}

void Hosts::poll(HostEvents& events) {
  events_ = &events;
  endpoint_->poll();
  events_ = nullptr;
}

void Hosts::on_connected(remote::Peer& peer) {
  const auto host = static_cast<std::size_t>(peer.task().id);
  if (peer.task().type == kSupervisorJob && host < peers_.size()) peers_[host] = &peer;
}

void Hosts::on_message(remote::Peer& peer, const remote::Message& message) {
  if (message.kind == kPhase && !all_are_here_) {
    all_are_here_ = true;
    return;
  }
  COHORT_CHECK(events_ != nullptr);  // nobody reports before all have been told that they are together
  if (message.kind == kPhase) {
    events_->on_phase(static_cast<Phase>(message.number));
    return;
  }
  if (message.kind == kServerWord) {
    WordMessage word{};
    if (message.body.size() != sizeof word) refuse(peer, message);
    std::memcpy(&word, message.body.data(), sizeof word);
    events_->on_server_word(peer.task().id, {.server = word.server,
                                             .word = static_cast<remote::SupervisorWord>(word.word),
                                             .number = message.number});
    return;
  }
  EndMessage end{};
  if (message.kind != kTaskEnd || message.body.size() < sizeof end) refuse(peer, message);
  std::memcpy(&end, message.body.data(), sizeof end);
  const auto job = message.body.subspan(sizeof end);
  events_->on_task_end(peer.task().id,
                       {std::string(reinterpret_cast<const char*>(job.data()), job.size()), end.id},
                       {.status = end.status, .signal = end.signal});
}

void Hosts::on_lost(remote::Peer& peer, const Error& error) {
  const auto found = std::ranges::find(peers_, &peer);
  if (found == peers_.end()) return;
  *found = nullptr;
  if (events_ == nullptr) throw Unavailable("{}", error.what());
  events_->on_host_lost(static_cast<int>(found - peers_.begin()), error.what());
}

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
