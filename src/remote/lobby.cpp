#include "lobby.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

#include "cluster/local_peer.h"

namespace cohort::remote {
namespace {

constexpr std::size_t kMostGuests = 128;

/// A task of the job that took so long is tried again by its own end.
constexpr std::chrono::seconds kLongestStay{5};

/// Until the next try to let somebody in, where this process or the system has no descriptor left.
constexpr std::chrono::milliseconds kPause{100};

/// Where there are too many, the first that was here so long makes room.
constexpr std::chrono::seconds kShortestStay{1};

}  // namespace

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
  while (listener && guests_.size() < kMostGuests) {
    watch::Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      const bool none_left = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (none_left) closed_until_ = Clock::now() + kPause;
      return;
    }
    if (reach == Reach::kNode && !watch::peer_of_this_user(socket.get())) continue;
    watch_for_input(socket.get());
    guests_.push_back(
        std::make_unique<Guest>(Guest{Handshake(std::move(socket), reach, Side::kListener, *identity_, false),
                                      Clock::now() + kLongestStay}));
    guests_.back()->handshake.advance();
  }
}

std::vector<Connected> Lobby::take_arrived() { return std::exchange(arrived_, {}); }

}  // namespace cohort::remote
