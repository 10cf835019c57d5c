#include "connecting.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "cluster/sockets.h"
#include "supervised_task.h"

namespace cohort::remote {
namespace {

constexpr std::chrono::milliseconds kLongestPause{250};

/// A connection takes a few round trips. TCP itself tries again later and later, up to a minute apart.
constexpr std::chrono::seconds kLongestConnecting{1};

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

constexpr std::size_t kMostGuests = 128;

/// A task of the job that took so long is tried again by its own end.
constexpr std::chrono::seconds kLongestStay{5};

/// Until the next try to let somebody in, where this process or the system has no descriptor left.
constexpr std::chrono::milliseconds kPause{100};

/// Where there are too many, the first that was here so long makes room.
constexpr std::chrono::seconds kShortestStay{1};

}  // namespace

Attempts::Attempts(const Identity& identity, const Address& address, bool over_network_only)
    : identity_(&identity), address_(&address) {
  if (!over_network_only) {
    if (const auto local = watch::local_address(address.local))
      attempts_.push_back({"a socket of this node", *local, Reach::kNode});
  }
  for (const std::string& text : address.network) {
    const auto network = watch::network_address(text);
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
    if (attempt.handshake && attempt.handshake->stage() == Handshake::Stage::kConnecting &&
        Clock::now() - attempt.begun > kLongestConnecting)
      attempt.handshake.reset();
    const bool there = attempt.handshake || start(attempt);
    // A task that is on this node is not looked for elsewhere.
    if (attempt.reach == Reach::kNode && there) return;
  }
}

bool Attempts::start(Attempt& attempt) {
  attempt.met_stranger = false;
  watch::Fd socket = watch::connect_to(attempt.address);
  if (!socket && attempt.reach == Reach::kNode && errno == EPERM) {
    attempt.last_failure = "a process of another user listens there";
    return false;
  }
  if (!socket) {
    // EAGAIN of a local listener: its queue is full, because its task has not looked at it for long.
    const bool queue_is_full = errno == EAGAIN;
    attempt.last_failure = queue_is_full ? "too many wait there to be let in" : std::strerror(errno);
    return queue_is_full;
  }
  attempt.last_failure = "no answer";
  attempt.begun = Clock::now();
  attempt.handshake.emplace(std::move(socket), attempt.reach, Side::kConnector, *identity_,
                            attempt.reach == Reach::kNetwork);
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

Lobby::Lobby(const Identity& identity, watch::Fd network_listener, watch::Fd local_listener)
    : identity_(&identity),
      network_listener_(std::move(network_listener)),
      local_listener_(std::move(local_listener)),
      events_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!events_) throw Unavailable("the system has no epoll to wait for tasks by: {}", std::strerror(errno));
  listen(true);
}

void Lobby::watch_for_input(int descriptor) const {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw Unavailable("cannot wait for tasks that connect: {}", std::strerror(errno));
}

void Lobby::listen(bool on) {
  if (on == listening_) return;
  listening_ = on;
  for (const watch::Fd* listener : {&network_listener_, &local_listener_}) {
    if (!*listener) continue;
    if (on)
      watch_for_input(listener->get());
    else
      ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, listener->get(), nullptr);
  }
}

Lobby::Clock::time_point Lobby::next_limit() const noexcept {
  const bool full = guests_.size() >= kMostGuests;
  const Clock::time_point leaves =
      guests_.empty()
          ? Clock::time_point::max()
          : guests_.front()->leaves_at - (full ? kLongestStay - kShortestStay : Clock::duration::zero());
  return std::min(leaves, listening_ || full ? Clock::time_point::max() : closed_until_);
}

void Lobby::advance() {
  for (const auto& guest : guests_) guest->handshake.advance();
  remove_ended();
  accept(local_listener_, Reach::kNode);
  accept(network_listener_, Reach::kNetwork);
  remove_ended();
  // One more would only wait in the listener's queue and keep this thread awake.
  listen(guests_.size() < kMostGuests && Clock::now() >= closed_until_);
}

void Lobby::remove_ended() {
  const Clock::time_point now = Clock::now();
  const bool full = guests_.size() >= kMostGuests;
  bool made_room = false;
  std::erase_if(guests_, [&](const std::unique_ptr<Guest>& guest) {
    const bool ended = guest->handshake.ended();
    const bool too_long = now >= guest->leaves_at;
    const bool makes_room = full && !made_room && now >= guest->leaves_at - kLongestStay + kShortestStay;
    if (!ended && !too_long && !makes_room) return false;
    made_room = true;
    ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, guest->handshake.descriptor(), nullptr);
    if (guest->handshake.stage() == Handshake::Stage::kDone) arrived_.push_back(guest->handshake.take());
    return true;
  });
}

void Lobby::accept(const watch::Fd& listener, Reach reach) {
  watch::Arrivals arrivals = watch::accept_all(listener, kMostGuests - guests_.size());
  if (arrivals.out_of_room) closed_until_ = Clock::now() + kPause;
  for (watch::Fd& socket : arrivals.sockets) {
    watch_for_input(socket.get());
    guests_.push_back(
        std::make_unique<Guest>(Guest{Handshake(std::move(socket), reach, Side::kListener, *identity_, false),
                                      Clock::now() + kLongestStay}));
    guests_.back()->handshake.advance();
  }
}

std::vector<Connected> Lobby::take_arrived() { return std::exchange(arrived_, {}); }

}  // namespace cohort::remote
