#include "tcp_transport.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>

namespace cohort::rendezvous {
namespace {

/// In larger communicators most pairs of members never talk.
constexpr int kMostConnectedAtOnce = 64;

/// Between looks at connections that are being made: short beside the time that a connection takes.
constexpr std::chrono::microseconds kNap{200};

std::vector<std::string> addresses_of(std::span<const std::string> blobs, int members) {
  std::vector<std::string> addresses;
  for (std::string_view blob : blobs) {
    for (int member = 0; member < members; ++member) {
      const std::size_t end = std::min(blob.find('\n'), blob.size());
      addresses.emplace_back(blob.substr(0, end));
      blob.remove_prefix(std::min(end + 1, blob.size()));
    }
  }
  return addresses;
}

void wait_for_connections(std::span<const std::shared_ptr<TcpNetwork>> networks,
                          const TcpGroupOptions& options) {
  const Deadline deadline = Deadline::after(options.timeout);
  for (const auto& network : networks) network->start_connecting();
  while (true) {
    for (const auto& network : networks) network->progress();
    const auto incomplete =
        std::ranges::find_if(networks, [](const auto& network) { return !network->unconnected().empty(); });
    if (incomplete == networks.end()) return;
    if (const Error* fault = options.fault()) throw_error(*fault);
    if (deadline.expired()) {
      const int member = (*incomplete)->unconnected().front();
      const WorkerInfo& worker = options.workers[static_cast<std::size_t>(member / options.members)];
      throw DeadlineExceeded(
          ErrorOrigin{"make_communicator", worker.rank, worker.host},
          fmt::format("make_communicator: deadline of {:.4g} s passed; there is no connection between {} and {}: "
                      "{}. A firewall between their hosts may forbid it",
                      options.timeout.count(),
                      describe(options.workers[static_cast<std::size_t>(options.rank)]), describe(worker),
                      (*incomplete)->report(member)));
    }
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace

std::vector<std::shared_ptr<TcpNetwork>> connect_members(const TcpGroupOptions& options) {
  TcpNetworkOptions network;
  network.workers = options.workers;
  for (const WorkerInfo& worker : options.workers)
    network.worker_of.insert(network.worker_of.end(), static_cast<std::size_t>(options.members), worker.rank);
  network.secret = options.secret;
  network.lost = options.lost;
  std::vector<std::shared_ptr<TcpNetwork>> networks;
  std::string own;
  for (int i = 0; i < options.members; ++i) {
    network.rank = options.rank * options.members + i;
    networks.push_back(std::make_shared<TcpNetwork>(network));
    own += networks.back()->address() + '\n';
  }
  const std::vector<std::string> addresses = addresses_of(options.exchange(own), options.members);
  for (const auto& each : networks) each->set_addresses(addresses);
  if (std::ssize(addresses) <= kMostConnectedAtOnce) wait_for_connections(networks, options);
  return networks;
}

TcpTransport::TcpTransport(std::shared_ptr<TcpNetwork> network)
    : network_(std::move(network)), context_ids_(std::make_shared<ContextIdPool>(ContextIdSet::kIds)) {}

TcpTransport::TcpTransport(const TcpTransport& parent, std::span<const int> members, const ContextId& id)
    : network_(parent.network_), context_ids_(parent.context_ids_), id_(id) {
  ancestor_ranks_.reserve(members.size());
  for (const int member : members) ancestor_ranks_.push_back(parent.ancestor_rank_of(member));
  context_ids_->take(id);
  network_->open_group(id.generation);
}

TcpTransport::~TcpTransport() {
  network_->close_group(id_.generation);
  if (id_.number != 0) context_ids_->give_back(id_.number);
}

Transport::Ticket TcpTransport::send(const Address& to, std::span<const std::byte> data) {
  return network_->send(ancestor_rank_of(to.member), label(static_cast<std::uint16_t>(to.channel), to.tag),
                        data);
}

Transport::Ticket TcpTransport::receive(const Address& from, std::span<std::byte> into) {
  return network_->receive(ancestor_rank_of(from.member),
                           label(static_cast<std::uint16_t>(from.channel), from.tag), into);
}

void TcpTransport::send_control(int member, std::string_view text) {
  network_->send_control(ancestor_rank_of(member), label(kControl, 0), text);
}

std::optional<Transport::ControlMessage> TcpTransport::receive_control() {
  std::optional<std::pair<int, std::string>> message = network_->receive_control(label(kControl, 0));
  if (!message) return std::nullopt;
  if (ancestor_ranks_.empty()) return ControlMessage{message->first, std::move(message->second)};
  const auto member = std::ranges::find(ancestor_ranks_, message->first);
  if (member == ancestor_ranks_.end()) return std::nullopt;
  return ControlMessage{static_cast<int>(member - ancestor_ranks_.begin()), std::move(message->second)};
}

std::unique_ptr<Transport> TcpTransport::split(std::span<const int> members, const ContextId& id) {
  return std::unique_ptr<Transport>(new TcpTransport(*this, members, id));
}

}  // namespace cohort::rendezvous
