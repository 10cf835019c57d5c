#include "attempts.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "cluster/local_peer.h"

namespace cohort::remote {
namespace {

constexpr std::chrono::milliseconds kLongestPause{250};

/// Where nobody listens, TCP may connect a socket to itself.
bool is_its_own_end(int socket) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_bytes = sizeof own;
  socklen_t peer_bytes = sizeof peer;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_bytes) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0 &&
         own_bytes == peer_bytes && std::memcmp(&own, &peer, own_bytes) == 0;
}

}  // namespace

Attempts::Attempts(const Identity& identity, const Address& address, bool over_network_only)
    : identity_(&identity), address_(&address) {
  if (!over_network_only) {
    if (const auto local = abstract_local_address(address.local))
      attempts_.push_back({"a socket of this node", *local, Reach::kNode});
  }
  for (const std::string& text : address.network) {
    const auto network = parse_network_address(text);
    if (!network) {
      throw InvalidArgument("{} has the address '{}', which is no numeric `address:port`",
                            name_of(address.task), text);
    }
    attempts_.push_back({text, *network, Reach::kNetwork});
  }
  if (attempts_.empty()) throw InvalidArgument("{} has no address to connect to", name_of(address.task));
}

std::optional<Connected> Attempts::advance() {
  if (!chosen_ && Clock::now() >= next_try_) start_round();
  for (Attempt& attempt : attempts_) {
    if (!attempt.handshake) continue;
    Handshake& handshake = *attempt.handshake;
    handshake.advance();
    if (handshake.stage() == Handshake::Stage::kOpening && is_its_own_end(handshake.descriptor()))
      fail(attempt, "nobody listens there", false);
    else if (handshake.stage() == Handshake::Stage::kFailed)
      fail(attempt, handshake.failure(), handshake.met_stranger());
    else if (handshake.stage() == Handshake::Stage::kProven && !chosen_)
      choose(attempt);
    else if (handshake.stage() == Handshake::Stage::kDone) {
      Connected answer = handshake.take();
      if (answer.peer.task == address_->task) return answer;
      fail(attempt, fmt::format("{} answers there", name_of(answer.peer.task)), true);
    }
  }
  refuse_strangers();
  return std::nullopt;
}

void Attempts::choose(Attempt& attempt) {
  chosen_ = true;
  for (Attempt& other : attempts_)
    if (&other != &attempt) other.handshake.reset();
  attempt.handshake->introduce(address_->task);
}

void Attempts::fail(Attempt& attempt, std::string why, bool met_stranger) {
  attempt.last_failure = std::move(why);
  attempt.met_stranger = met_stranger;
  attempt.handshake.reset();
  chosen_ = false;
}

void Attempts::start_round() {
  next_try_ = Clock::now() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
  for (Attempt& attempt : attempts_) {
    const bool there = attempt.handshake || start(attempt);
    // A task that is on this node is not looked for elsewhere.
    if (attempt.reach == Reach::kNode && there) return;
  }
}

bool Attempts::start(Attempt& attempt) {
  watch::Fd socket(
      ::socket(attempt.address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  attempt.met_stranger = false;
  if (!socket) {
    attempt.last_failure = std::strerror(errno);
    return false;
  }
  const bool connected = ::connect(socket.get(), attempt.address.get(), attempt.address.bytes) == 0;
  if (!connected && errno != EINPROGRESS) {
    // EAGAIN of a local listener: its queue is full, because its task has not looked at it for long.
    const bool queue_is_full = errno == EAGAIN;
    attempt.last_failure = queue_is_full ? "too many wait there to be let in" : std::strerror(errno);
    return queue_is_full;
  }
  if (attempt.reach == Reach::kNode && !watch::peer_of_this_user(socket.get())) {
    attempt.last_failure = "a process of another user listens there";
    return false;
  }
  attempt.last_failure = "no answer";
  attempt.handshake.emplace(std::move(socket), attempt.reach, Side::kConnector, *identity_, !connected);
  return true;
}

// An address may lead to another machine, and another one to the right one; a name on this node does not.
void Attempts::refuse_strangers() const {
  const bool on_node = attempts_.front().reach == Reach::kNode && attempts_.front().met_stranger;
  const bool on_network =
      attempts_.back().reach == Reach::kNetwork && std::ranges::all_of(attempts_, [](const Attempt& attempt) {
        return attempt.met_stranger || attempt.reach == Reach::kNode;
      });
  if (!on_node && !on_network) return;
  throw InvalidArgument("connecting to {} on {} reached something else: {}", name_of(address_->task),
                        address_->host, report());
}

void Attempts::add_to(std::vector<pollfd>& polled) const {
  for (const Attempt& attempt : attempts_) {
    if (!attempt.handshake) continue;
    const bool connecting = attempt.handshake->stage() == Handshake::Stage::kConnecting;
    polled.push_back({attempt.handshake->descriptor(), static_cast<short>(connecting ? POLLOUT : POLLIN), 0});
  }
}

std::string Attempts::report() const {
  std::string report;
  for (const Attempt& attempt : attempts_) {
    if (attempt.last_failure.empty()) continue;
    if (!report.empty()) report += "; ";
    report += fmt::format("{}: {}", attempt.text, attempt.last_failure);
  }
  return report;
}

}  // namespace cohort::remote
