#include "standby.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <cohort/base/log.h>
#include <cohort/server/detail/codec.h>

#include "cluster/sockets.h"
#include "remote/supervised_task.h"
#include "replication.h"
#include "rpc/protocol.h"
#include "server/store/store_layout.h"

namespace cohort::server {
namespace {

/// An attempt to connect cannot be interrupted by the supervisor's word, so the first ones after a loss are
/// short. A server that is busy needs longer ones.
constexpr std::chrono::milliseconds kFirstAttempt{200};
constexpr std::chrono::milliseconds kLongestAttempt{2000};

remote::Address without_own(remote::Address address, const remote::TaskPlace& place) {
  for (const std::string& own : watch::network_addresses(place.network_listener))
    std::erase(address.network, own);
  return address;
}

remote::EndpointOptions options_for(const remote::TaskPlace& place) {
  remote::EndpointOptions options;
  options.task = {kStandbyJob, place.task.id};
  options.secret = place.secret;
  return options;
}

}  // namespace

Standby::Copy::Copy(int memory, const remote::TaskPlace& place, Preparations prepared, ServerOutput& output)
    : store(memory), server(store, &output, std::move(prepared)), farewells(store, place) {}

Standby::Standby(const remote::TaskPlace& place) : place_(place), attempt_(kFirstAttempt) {
  if (place.memory < 0 || place.supervisor < 0) {
    throw InvalidArgument(
        "the standby of {} has no memory file, or no supervisor: it is started by cohort-run",
        remote::name_of(place.task));
  }
  server_ = without_own(remote::address_of(place_, place_.task), place_);
  endpoint_ =
      std::make_unique<remote::SharedEndpoint>(options_for(place_), static_cast<remote::Handler&>(*this));
  watch_ = std::make_unique<SupervisorWatch>(remote::SupervisorLine(place_.supervisor),
                                             [this](remote::SupervisorWord word) {
                                               if (word != remote::SupervisorWord::kTakeOver) return;
                                               told_.store(true);
                                               endpoint_->notify();
                                             });
}

Standby::~Standby() = default;

std::optional<Preparations> Standby::run() {
  while (!told_.load()) {
    if (peer_ == nullptr) connect();
    endpoint_->wait_until([this] { return told_.load() || peer_ == nullptr || applied_ != acknowledged_; });
    endpoint_->exclusively([this] {
      if (peer_ != nullptr && acknowledged_ != applied_)
        peer_->send(to_number(MessageKind::kApplied), applied_);
      acknowledged_ = applied_;
    });
    if (job_over_) return std::nullopt;
  }
  return take_over();
}

void Standby::connect() {
  try {
    endpoint_->exclusively(
        [this] { peer_ = &endpoint_->endpoint().connect(server_, Deadline::after(attempt_)); });
    attempt_ = kFirstAttempt;
  } catch (const Error& error) {
    logging::debug("{}", error.what());
    attempt_ = std::min(2 * attempt_, kLongestAttempt);
    // What answers at once that it is somebody else is not asked again at once.
    endpoint_->wait_until([this] { return told_.load(); }, Deadline::after(kFirstAttempt));
  }
}

void Standby::on_connected(remote::Peer& peer) {
  const Following following{.store_version = kStoreVersion, .byte_order = kByteOrder};
  peer.send(to_number(MessageKind::kFollow), 0, std::as_bytes(std::span(&following, 1)));
}

void Standby::on_message(remote::Peer& peer, const remote::Message& message) {
  if (told_.load() || &peer != peer_) return;
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kFailure: throw_error(rpc::parse_failure(message.body));
    case MessageKind::kCopyBegin: return begin(message);
    case MessageKind::kCopyBytes: {
      Decoder decoder(message.body);
      const auto position = decoder.number<std::uint64_t>();
      if (incoming_) incoming_->write(position, decoder.rest());
      return;
    }
    case MessageKind::kCopyPrepared: {
      const SenderHeap none(-1);
      CommitMessage prepared = parse_commit(message.body, {peer, none});
      prepared_.insert_or_assign(prepared.execution, std::move(prepared));
      return;
    }
    case MessageKind::kCopyEnd: return complete(message);
    default: return apply(peer, message);
  }
}

/// The copy from before is kept until here: the server has its supervisor's word that it does not count.
void Standby::begin(const remote::Message& message) {
  copy_.reset();
  prepared_.clear();
  applied_ = acknowledged_ = 0;
  incoming_.emplace(place_.memory, Decoder(message.body).number<StoreCopyPlan>());
}

void Standby::complete(const remote::Message& message) {
  if (!incoming_) return;
  incoming_->finish(Decoder(message.body).number<std::uint64_t>());
  incoming_.reset();
  copy_ = std::make_unique<Copy>(place_.memory, place_, std::exchange(prepared_, {}),
                                 static_cast<ServerOutput&>(*this));
  applied_ = message.number;
}

void Standby::apply(remote::Peer& peer, const remote::Message& message) {
  if (copy_ == nullptr) return;
  changed_ = false;
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kGoodbye: {
      Decoder decoder(message.body);
      const std::string job(decoder.text());
      copy_->farewells.add({job, decoder.number<int>()});
      if (copy_->farewells.are_complete()) job_over_ = true;
      break;
    }
    case MessageKind::kJobOver: job_over_ = true; break;
    default:
      copy_->server.answer(peer, message);
      if (!changed_)
        throw DataLoss("what {} has changed changes nothing in the copy of its standby", peer.name());
  }
  applied_ = message.number;
}

void Standby::changed(MessageKind /*kind*/, std::span<const std::byte> /*body*/) { changed_ = true; }

void Standby::answer(remote::Peer& peer, MessageKind kind, std::uint64_t /*number*/,
                     std::span<const std::byte> body) {
  if (kind != MessageKind::kFailure) return;
  throw DataLoss("the standby of {} cannot do what {} has done: {}", remote::name_of(place_.task),
                 peer.name(), rpc::parse_failure(body).what());
}

void Standby::on_lost(remote::Peer& peer, const Error& error) {
  if (&peer != peer_) return;
  logging::info("{}; its standby waits for it, or for the word to take over", error.what());
  peer_ = nullptr;
}

Preparations Standby::take_over() {
  if (incoming_)
    throw DataLoss("the standby of {} is to take over, but its copy is not complete",
                   remote::name_of(place_.task));
  endpoint_->exclusively([this] {
    if (peer_ != nullptr) peer_->send(to_number(MessageKind::kTookOver), 0);
  });
  watch_.reset();
  endpoint_.reset();
  Preparations prepared;
  if (copy_ != nullptr) prepared = copy_->server.take_prepared();
  copy_.reset();
  logging::info("the standby of {} takes over", remote::name_of(place_.task));
  return prepared;
}

}  // namespace cohort::server
