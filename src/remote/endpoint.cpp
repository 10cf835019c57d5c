#include <cohort/remote/endpoint.h>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/system_calls.h"
#include "connecting.h"
#include "device/node_memory.h"
#include "network_peer.h"
#include "node_peer.h"
#include "peer_base.h"
#include "supervised_task.h"

namespace cohort::remote {

/// Its connections, those that come to be, and when it looks where.
class Endpoint::Impl {
 public:
  Impl(EndpointOptions options, Handler& handler);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return address_; }
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return identity_.introduction.incarnation; }

  Peer& connect(const Address& address, Deadline deadline);
  int poll();
  bool wait(Deadline deadline);
  void wake() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  /// What one look at everything came to.
  struct Progress {
    int messages = 0;
    bool events = false;  ///< the handler was told something else, or a backlog has become less
  };
  Progress look();
  void announce_new(Progress& progress);
  void hand_over(Progress& progress);
  void report_lost(Progress& progress);
  void ask_system(int timeout_ms);
  void watch_signs(Clock::time_point now);
  void sleep(Deadline deadline);
  void let_in();
  PeerBase& add(Connected connected);
  void require_outside_handler(const char* call) const;

  EndpointOptions options_;
  Handler* handler_;
  pid_t process_;
  Identity identity_;
  Address address_;
  watch::Fd epoll_;
  std::unique_ptr<Lobby> lobby_;
  std::unique_ptr<SignsOfLife> signs_;            ///< outlives the peers
  std::vector<std::unique_ptr<PeerBase>> peers_;  ///< all that ever were
  std::vector<PeerBase*> live_;
  std::deque<PeerBase*> new_;  ///< not announced to the handler
  bool any_over_network_ = false;
  bool in_handler_ = false;
  unsigned looks_ = 0;  ///< since the system was asked
  Clock::time_point asked_at_{};
  Clock::time_point watched_at_ = Clock::now();
  int waits_asleep_ = 0;  ///< how many of the next waits go to sleep at once
  std::atomic<bool> woken_{false};
};

namespace {

/// Rings are looked at each time, the system at each of so many. Asking it costs as much as many looks.
constexpr unsigned kLooksBetweenQuestions = 32;

/// A task that looks rarely asks each time.
constexpr std::chrono::microseconds kLongestWithoutQuestion{100};

/// About the cost of falling asleep and being woken.
constexpr std::chrono::microseconds kLongestSpin{50};

/// Tasks that work together return a core sooner than this. Where another program keeps it for longer,
/// sleeping is faster, and is done for a while.
constexpr std::chrono::microseconds kLongYield{500};
constexpr int kWaitsAsleep = 128;

/// How long the end of an endpoint may take so that what was sent reaches other nodes.
constexpr std::chrono::milliseconds kLongestClose{500};

EndpointOptions checked(EndpointOptions options) {
  if (options.secret.size() < kShortestSecret) {
    throw InvalidArgument("the secret of {} has {} bytes; it needs {} that others cannot guess",
                          name_of(options.task), options.secret.size(), kShortestSecret);
  }
  if (options.heartbeat.count() <= 0 || options.silence.count() < 0 ||
      (options.silence.count() > 0 && options.silence < 2 * options.heartbeat)) {
    throw InvalidArgument(
        "a heartbeat of {} ms and a silence of {} ms: the first must be positive, and the second twice as "
        "long, or 0 for never",
        options.heartbeat.count(), options.silence.count());
  }
  return options;
}

}  // namespace

Endpoint::Impl::Impl(EndpointOptions options, Handler& handler)
    : options_(checked(std::move(options))),
      handler_(&handler),
      process_(::getpid()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw Unavailable("the system has no epoll to wait for tasks by: {}", std::strerror(errno));
  identity_.introduction.task = options_.task;
  identity_.introduction.host = host_name();
  watch::fill_randomly(std::as_writable_bytes(std::span(&identity_.introduction.incarnation, 1)));
  identity_.introduction.pid = process_;
  identity_.introduction.heartbeat = options_.heartbeat;
  identity_.introduction.nonce_address = reinterpret_cast<std::uint64_t>(&memory_nonce());
  identity_.introduction.nonce = memory_nonce();
  identity_.secret = options_.secret;
  if (options_.offered >= 0) {
    identity_.offered.reset(::fcntl(options_.offered, F_DUPFD_CLOEXEC, 0));
    if (!identity_.offered)
      throw InvalidArgument("the descriptor {} that {} offers: {}", options_.offered, name_of(options_.task),
                            std::strerror(errno));
  }
  address_.task = options_.task;
  address_.host = identity_.introduction.host;
  // First the local one: a task of this node that finds the other open finds this one, too.
  watch::Fd local;
  if (options_.local_listener >= 0) local = watch::take_over(options_.local_listener, Reach::kNode);
  if (options_.over_network_only) {
    local.reset();
  } else {
    if (!local) local = watch::listen_local(watch::random_token());
    if (!local) throw Unavailable("cannot listen for tasks of this node: {}", std::strerror(errno));
    address_.local = watch::local_name(local.get());
    permit_neighbours_to_read();
  }
  watch::Fd network = options_.network_listener >= 0
                          ? watch::take_over(options_.network_listener, Reach::kNetwork)
                          : watch::listen_network();
  if (!network) throw Unavailable("cannot listen for other tasks over TCP: {}", std::strerror(errno));
  address_.network = watch::network_addresses(network.get());
  lobby_ = std::make_unique<Lobby>(identity_, std::move(network), std::move(local));

  // Edges, so that the bell need not be read; nobody's data mean that there are guests in the lobby.
  epoll_event bell{.events = EPOLLIN | EPOLLET, .data = {.ptr = this}};
  epoll_event guests{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, identity_.bell.event_descriptor(), &bell) != 0 ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, lobby_->descriptor(), &guests) != 0) {
    throw Unavailable("cannot wait for other tasks: {}", std::strerror(errno));
  }
  signs_ = std::make_unique<SignsOfLife>(identity_.bell, options_.heartbeat);
}

Endpoint::Impl::~Impl() {
  // A forked child has copies of all, but the connections are its parent's, and so are the thread and what it
  // may have locked.
  if (::getpid() != process_) {
    for (std::unique_ptr<PeerBase>& peer : peers_) static_cast<void>(peer.release());
    static_cast<void>(signs_.release());
    return;
  }
  const Clock::time_point limit = Clock::now() + kLongestClose;
  for (PeerBase* peer : live_) {
    peer->set_lost();
    peer->close(limit);
  }
}

Peer& Endpoint::Impl::connect(const Address& address, Deadline deadline) {
  Attempts attempts(identity_, address, options_.over_network_only);
  while (true) {
    if (std::optional<Connected> connected = attempts.advance()) return add(std::move(*connected));
    // Those who connect to this task meanwhile are let in, for two may connect to each other.
    let_in();
    if (deadline.expired()) {
      throw Unavailable("{} on {} cannot be reached: {}", name_of(address.task), address.host,
                        attempts.report());
    }
    std::vector<pollfd> polled{{lobby_->descriptor(), POLLIN, 0}};
    attempts.add_to(polled);
    const auto until = std::min({deadline.at(), attempts.next_try(), lobby_->next_limit()});
    watch::poll_until(polled, until);
  }
}

void Endpoint::Impl::let_in() {
  lobby_->advance();
  for (Connected& connected : lobby_->take_arrived()) {
    const std::string name = name_of(connected.peer.task);
    try {
      add(std::move(connected));
    } catch (const Error& e) {
      // It sees its connection closed. This task goes on with the others.
      logging::warning("{} could not let in {}: {}", name_of(address_.task), name, e.what());
    }
  }
}

PeerBase& Endpoint::Impl::add(Connected connected) {
  std::unique_ptr<PeerBase> peer;
  if (connected.reach == Reach::kNode) {
    peer = std::make_unique<NodePeer>(std::move(connected), *handler_);
  } else {
    peer = std::make_unique<NetworkPeer>(std::move(connected), *handler_, *signs_);
    any_over_network_ = true;
  }
  peer->watch_by(epoll_.get());
  PeerBase& added = *peers_.emplace_back(std::move(peer));
  live_.push_back(&added);
  new_.push_back(&added);
  return added;
}

void Endpoint::Impl::require_outside_handler(const char* call) const {
  if (in_handler_) throw WrongContext("{} was called by the handler, which it would call again", call);
}

int Endpoint::Impl::poll() {
  require_outside_handler("Endpoint::poll");
  return look().messages;
}

Endpoint::Impl::Progress Endpoint::Impl::look() {
  in_handler_ = true;
  struct AtEnd {
    bool& in_handler;
    ~AtEnd() { in_handler = false; }
  } at_end{in_handler_};
  Progress progress;
  announce_new(progress);
  hand_over(progress);
  ++looks_;
  const bool idle = progress.messages == 0;
  if (looks_ >= kLooksBetweenQuestions ||
      (idle && (any_over_network_ || Clock::now() - asked_at_ >= kLongestWithoutQuestion))) {
    ask_system(0);
    announce_new(progress);
    hand_over(progress);
  }
  report_lost(progress);
  return progress;
}

// While the handler is called, it may connect, so lists may grow.
void Endpoint::Impl::announce_new(Progress& progress) {
  while (!new_.empty()) {
    PeerBase& peer = *new_.front();
    new_.pop_front();
    peer.announced = true;
    progress.events = true;
    handler_->on_connected(peer);
  }
}

void Endpoint::Impl::hand_over(Progress& progress) {
  // NOLINTNEXTLINE(modernize-loop-convert): what is handed over may connect to others, and the list grows
  for (std::size_t i = 0; i < live_.size(); ++i) {
    PeerBase& peer = *live_[i];
    if (!peer.announced) continue;
    if (peer.flush()) progress.events = true;
    progress.messages += peer.hand_over();
  }
}

void Endpoint::Impl::report_lost(Progress& progress) {
  for (std::size_t i = 0; i < live_.size();) {
    PeerBase& peer = *live_[i];
    if (!peer.announced || !peer.ending()) {
      ++i;
      continue;
    }
    // What it sent before its end comes first.
    progress.messages += peer.hand_over();
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
    peer.set_lost();
    any_over_network_ = std::ranges::any_of(live_, [](PeerBase* one) { return !one->on_this_node(); });
    peer.close(Clock::now());
    progress.events = true;
    handler_->on_lost(peer, Unavailable("{} {}", peer.name(), *peer.ending()));
  }
}

void Endpoint::Impl::ask_system(int timeout_ms) {
  looks_ = 0;
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  const Clock::time_point now = asked_at_ = Clock::now();
  bool guests = now >= lobby_->next_limit();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr == nullptr)
      guests = true;
    else if (event.data.ptr != this)
      static_cast<PeerBase*>(event.data.ptr)->on_event(event.events);
  }
  if (guests) let_in();
  if (options_.silence.count() > 0 && now - watched_at_ >= options_.heartbeat / 2) watch_signs(now);
}

void Endpoint::Impl::watch_signs(Clock::time_point now) {
  const Clock::duration since_last = now - std::exchange(watched_at_, now);
  for (PeerBase* peer : live_) peer->watch(since_last, options_.silence);
}

bool Endpoint::Impl::wait(Deadline deadline) {
  require_outside_handler("Endpoint::wait_until");
  const Clock::time_point begin = Clock::now();
  Clock::time_point now = begin;
  if (waits_asleep_ > 0) --waits_asleep_;
  const Clock::duration longest_spin = waits_asleep_ > 0 ? Clock::duration::zero() : kLongestSpin;
  while (true) {
    const Progress progress = look();
    // Also where messages never cease.
    if (now >= deadline.at()) return false;
    if (progress.messages > 0 || progress.events || (woken_.load() && woken_.exchange(false))) return true;
    if (now - begin >= longest_spin) break;
    // Where tasks outnumber cores, the one that is waited for may need this core.
    ::sched_yield();
    const Clock::time_point before = std::exchange(now, Clock::now());
    if (now - before > kLongYield) waits_asleep_ = kWaitsAsleep;
  }
  sleep(deadline);
  return true;
}

void Endpoint::Impl::sleep(Deadline deadline) {
  identity_.bell.fall_asleep();
  const bool ready = woken_.load() || !new_.empty() ||
                     std::ranges::any_of(live_, [](PeerBase* peer) { return peer->is_ready(); });
  if (!ready) {
    Clock::time_point until = std::min(deadline.at(), lobby_->next_limit());
    if (options_.silence.count() > 0 && !live_.empty())
      until = std::min(until, Clock::now() + options_.heartbeat / 2);
    ask_system(watch::milliseconds_until(until));
  }
  identity_.bell.awake();
}

void Endpoint::Impl::wake() noexcept {
  woken_.store(true);
  identity_.bell.ring();
}

Endpoint::Endpoint(EndpointOptions options, Handler& handler)
    : impl_(std::make_unique<Impl>(std::move(options), handler)) {}
Endpoint::~Endpoint() = default;

const Address& Endpoint::address() const noexcept { return impl_->address(); }
std::uint64_t Endpoint::incarnation() const noexcept { return impl_->incarnation(); }
Peer& Endpoint::connect(const Address& address, Deadline deadline) {
  return impl_->connect(address, deadline);
}
int Endpoint::poll() { return impl_->poll(); }
bool Endpoint::wait(Deadline deadline) { return impl_->wait(deadline); }
void Endpoint::wake() noexcept { impl_->wake(); }

}  // namespace cohort::remote
