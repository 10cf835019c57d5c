#include "connections.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/log.h>
#include <cohort/server/detail/codec.h>

#include "remote/supervised_task.h"
#include "rpc/protocol.h"

namespace cohort::server {
namespace {

/// How long a server that was lost may take to come back.
constexpr std::chrono::seconds kReturnLimit{10};

/// Such a request concerns a server with or without its variables.
constexpr bool takes_leave(MessageKind kind) {
  return kind == MessageKind::kGoodbye || kind == MessageKind::kJobOver;
}

int count_servers(const remote::TaskPlace& place) {
  return static_cast<int>(std::ranges::count_if(
      place.addresses, [](const remote::Address& address) { return address.task.type == "ps"; }));
}

remote::EndpointOptions options_for(const remote::TaskPlace& place, int offered) {
  remote::EndpointOptions options = remote::endpoint_options(place);
  options.offered = offered;
  return options;
}

}  // namespace

Connections::Connections(remote::TaskPlace place, int offered)
    : place_(std::move(place)),
      servers_(static_cast<std::size_t>(count_servers(place_))),
      shared_(std::make_unique<remote::SharedEndpoint>(options_for(place_, offered),
                                                       static_cast<remote::Handler&>(*this),
                                                       static_cast<remote::Upkeep*>(this))) {}

Connections::~Connections() = default;

void Connections::set_part(TaskPart& part) {
  const remote::SharedEndpoint::Turn turn(*shared_);
  part_ = &part;
  for (remote::Peer* peer : std::vector(peers_)) part.on_connected(*peer);
  for (const EarlyMessage& message : std::exchange(early_, {}))
    part.on_message(*message.peer, {message.kind, message.number, message.body});
}

void Connections::name_variables_by(NamesOn names_on) {
  const remote::SharedEndpoint::Turn turn(*shared_);
  names_on_ = std::move(names_on);
}

std::string Connections::variables_on(int server, std::span<const VariableIndex> some) {
  const remote::SharedEndpoint::Turn turn(*shared_);
  return names_on_ ? names_on_(server, some) : std::string();
}

void Connections::clear_part() {
  const remote::SharedEndpoint::Turn turn(*shared_);
  part_ = nullptr;
}

remote::Peer& Connections::connect(const ClusterTask& task, Deadline deadline) {
  const remote::SharedEndpoint::Turn turn(*shared_);
  return shared_->endpoint().connect(remote::address_of(place_, task), deadline);
}

std::vector<std::byte> Connections::ask(Request request) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  return std::move(ask(std::move(requests)).front());
}

std::vector<std::vector<std::byte>> Connections::ask(std::vector<Request> requests) {
  if (job_is_over()) {
    throw Unavailable(
        "the job is over: its coordinator has ended, and the servers with it; read what is to be kept before "
        "that");
  }
  std::atomic<int> left{static_cast<int>(requests.size())};
  std::vector<std::uint64_t> numbers;
  exclusively([&] {
    for (Request& request : requests) {
      const std::uint64_t number = next_number_++;
      numbers.push_back(number);
      Pending& pending = pending_[number];
      pending.request = std::move(request);
      pending.left = &left;
      send(number, pending);
    }
  });
  try {
    wait_until([&] { return left.load() == 0; });
  } catch (...) {
    give_up(numbers);
    throw;
  }
  std::vector<std::vector<std::byte>> answers;
  std::unique_ptr<Error> failure;
  exclusively([&] {
    for (const std::uint64_t number : numbers) {
      const auto place = pending_.find(number);
      answers.push_back(std::move(place->second.answer));
      if (failure == nullptr) failure = std::move(place->second.failure);
      pending_.erase(place);
    }
  });
  if (failure != nullptr) throw_error(*failure);
  return answers;
}

/// Whose answers nobody waits for.
void Connections::give_up(std::span<const std::uint64_t> numbers) noexcept {
  const remote::SharedEndpoint::Turn turn(*shared_);
  for (const std::uint64_t number : numbers) pending_.erase(number);
}

std::shared_ptr<const StoreReader> Connections::reader(int server) {
  const remote::SharedEndpoint::Turn turn(*shared_);
  const Server& asked = servers_[static_cast<std::size_t>(server)];
  return asked.known && asked.failure == nullptr ? asked.reader : nullptr;
}

bool Connections::reads_memory(int server) {
  const remote::SharedEndpoint::Turn turn(*shared_);
  return servers_[static_cast<std::size_t>(server)].reads_memory;
}

void Connections::set_reads_no_memory(int server) {
  const remote::SharedEndpoint::Turn turn(*shared_);
  servers_[static_cast<std::size_t>(server)].reads_memory = false;
}

void Connections::take_leave(MessageKind kind) noexcept {
  if (job_is_over()) return;
  try {
    std::vector<Request> requests;
    exclusively([&] {
      for (int server = 0; server < servers(); ++server) {
        if (!servers_[static_cast<std::size_t>(server)].gone) requests.push_back({server, kind, {}});
      }
    });
    static_cast<void>(ask(std::move(requests)));
  } catch (const std::exception& error) {
    logging::debug("a server was not told that {} has ended: {}", remote::name_of(place_.task), error.what());
  }
  if (kind == MessageKind::kJobOver) set_job_over();
}

void Connections::send(std::uint64_t number, Pending& pending) {
  const Server& server = servers_[static_cast<std::size_t>(pending.request.server)];
  if (server.failure != nullptr && !takes_leave(pending.request.kind)) {
    pending.failure = std::make_unique<Error>(*server.failure);
    settle(pending);
  } else if (server.known) {  // else it is sent once the server is known to be the one it was
    const Request& request = pending.request;
    if (request.end) {
      const auto owner = std::make_shared<const Tensor>(*request.end);
      server.peer->send_shared(to_number(request.kind), number, request.body, owner->raw(), owner);
    } else {
      server.peer->send(to_number(request.kind), number, request.body);
    }
  }
}

bool Connections::is_due() const {
  return std::ranges::any_of(pending_, [&](const auto& entry) {
    return !entry.second.done &&
           servers_[static_cast<std::size_t>(entry.second.request.server)].peer == nullptr;
  });
}

void Connections::run() {
  for (int i = 0; i < servers(); ++i) {
    Server& server = servers_[static_cast<std::size_t>(i)];
    const auto is_for_it = [&](const auto& entry) {
      return !entry.second.done && entry.second.request.server == i;
    };
    if (server.peer != nullptr || std::ranges::none_of(pending_, is_for_it)) continue;
    try {
      remote::Peer& peer =
          shared_->endpoint().connect(remote::address_of(place_, {"ps", i}), Deadline::after(kReturnLimit));
      server.reads_memory = peer.on_this_node();
      server.reader.reset();
      if (peer.offered_descriptor() >= 0)
        server.reader = std::make_shared<StoreReader>(peer.offered_descriptor());
      server.peer = &peer;
      server.gone = false;
      peer.send(to_number(MessageKind::kIdentify), 0);
    } catch (const Error& error) {
      server.gone = true;
      fail_requests_to(i, Unavailable("{}; {}", error.what(), what_is_lost_with(i)));
    }
  }
}

void Connections::identify(remote::Peer& peer, std::span<const std::byte> body) {
  const int index = server_of(peer);
  Server& server = servers_[static_cast<std::size_t>(index)];
  const auto identity = Decoder(body).number<std::uint64_t>();
  if (server.identity != 0 && server.identity != identity) set_empty(index, peer);
  server.identity = identity;
  server.known = true;
  for (auto& [number, pending] : pending_) {
    if (!pending.done && pending.request.server == index) send(number, pending);
  }
}

/// A server of a new memory has nothing of what this task knows.
void Connections::set_empty(int server, const remote::Peer& peer) {
  servers_[static_cast<std::size_t>(server)].failure = std::make_shared<const Error>(
      Unavailable("{} has come back without its memory; {}", peer.name(), what_is_lost_with(server)));
}

std::string Connections::what_is_lost_with(int server) const {
  const std::string variables = names_on_ ? names_on_(server, {}) : std::string();
  if (variables.empty()) return "this task had no variables there";
  return fmt::format(
      "both copies of these variables are gone: {}; start the job again, from its last checkpoint",
      variables);
}

void Connections::settle(Pending& pending) {
  pending.done = true;
  pending.left->fetch_sub(1);
}

void Connections::fail_requests_to(int server, const Error& error) {
  for (auto& [number, pending] : pending_) {
    if (pending.done || pending.request.server != server) continue;
    pending.failure = std::make_unique<Error>(error);
    settle(pending);
  }
}

int Connections::server_of(const remote::Peer& peer) const noexcept {
  for (int i = 0; i < servers(); ++i) {
    if (servers_[static_cast<std::size_t>(i)].peer == &peer) return i;
  }
  return -1;
}

void Connections::on_connected(remote::Peer& peer) {
  peers_.push_back(&peer);
  if (part_ != nullptr) part_->on_connected(peer);
}

std::span<std::byte> Connections::destination(remote::Peer& peer, std::uint16_t kind, std::uint64_t number,
                                              std::span<const std::byte> /*head*/, std::size_t large_bytes) {
  const auto place = pending_.find(number);
  if (kind != to_number(MessageKind::kReply) || place == pending_.end() || place->second.done) return {};
  const std::optional<Tensor>& into = place->second.request.into;
  if (!into || into->bytes() != large_bytes) return {};
  return arriving_.insert_or_assign(&peer, *into).first->second.raw();
}

void Connections::on_message(remote::Peer& peer, const remote::Message& message) {
  arriving_.erase(&peer);
  const bool answers = message.kind == to_number(MessageKind::kReply) ||
                       message.kind == to_number(MessageKind::kFailure) ||
                       message.kind == to_number(MessageKind::kNoVariable);
  if (!answers) {
    if (part_ != nullptr)
      part_->on_message(peer, message);
    else
      early_.push_back({&peer, message.kind, message.number, {message.body.begin(), message.body.end()}});
    return;
  }
  if (message.number == 0) return identify(peer, message.body);
  const auto place = pending_.find(message.number);
  if (place == pending_.end() || place->second.done) return;  // of a request that was repeated
  Pending& pending = place->second;
  if (message.kind == to_number(MessageKind::kReply)) {
    pending.answer.assign(message.body.begin(), message.body.end());
  } else if (message.kind == to_number(MessageKind::kNoVariable)) {
    // This task was told of the variable by another one, and has never seen the server's first memory.
    set_empty(pending.request.server, peer);
    pending.failure =
        std::make_unique<Error>(*servers_[static_cast<std::size_t>(pending.request.server)].failure);
  } else {
    pending.failure = std::make_unique<Error>(rpc::parse_failure(message.body));
  }
  settle(pending);
}

void Connections::on_lost(remote::Peer& peer, const Error& error) {
  std::erase(peers_, &peer);
  arriving_.erase(&peer);
  std::erase_if(early_, [&](const EarlyMessage& message) { return message.peer == &peer; });
  if (const int server = server_of(peer); server >= 0) {
    servers_[static_cast<std::size_t>(server)].peer = nullptr;
    servers_[static_cast<std::size_t>(server)].known = false;
    servers_[static_cast<std::size_t>(server)].reader.reset();
  }
  if (part_ != nullptr) part_->on_lost(peer, error);
}

}  // namespace cohort::server
