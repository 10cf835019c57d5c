#include "cluster/descriptor_exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include <cohort/base/error.h>

#include "sockets.h"

namespace cohort {
namespace {

using watch::Fd;

constexpr std::size_t kTokenBytes = 32;

/// What each worker tells the others: where it listens, and the two secrets of that socket. Other processes
/// of the machine can see the name, but not the secrets.
struct Invitation {
  std::string name;    ///< empty: neither listens nor sends
  std::string answer;  ///< says this worker to those who connect, before they send anything
  std::string key;     ///< comes with each descriptor
};

std::string to_blob(const Invitation& invitation) {
  return invitation.name + invitation.answer + invitation.key;
}

Invitation parse_invitation(const std::string& blob) {
  if (blob.size() != 3 * kTokenBytes) return {};
  return {blob.substr(0, kTokenBytes), blob.substr(kTokenBytes, kTokenBytes), blob.substr(2 * kTokenBytes)};
}

/// Sent with a descriptor: the sender's rank, and the receiver's key as proof of the right job.
struct Greeting {
  int rank = -1;
  std::array<char, kTokenBytes> key{};
};

/// This worker's descriptor on its way to a peer: handed over once the peer has proved, as a process of this
/// user that knows its own answer, to belong to this job.
class Delivery {
 public:
  Delivery(Invitation to, int own_rank, int descriptor)
      : to_(std::move(to)), descriptor_(descriptor), own_rank_(own_rank) {
    connect();
  }

  /// Nothing more will come of it, whether the descriptor was sent or not.
  [[nodiscard]] bool done() const { return done_; }
  /// The peer has not taken the connections that others made before; to be tried again.
  [[nodiscard]] bool is_queueing() const { return !done_ && !socket_; }
  [[nodiscard]] pollfd to_poll() const { return {socket_.get(), POLLIN, 0}; }

  void connect() {
    const std::optional<watch::SocketAddress> name = watch::local_address(to_.name);
    if (name) socket_ = watch::connect_to(*name, SOCK_SEQPACKET);
    // A peer on another node or in another network namespace has no such name here.
    done_ = !name || (!socket_ && errno != EAGAIN);
  }

  void read_answer() {
    std::array<char, kTokenBytes + 1> answer{};
    const ssize_t bytes = ::recv(socket_.get(), answer.data(), answer.size(), 0);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
    done_ = true;
    if (bytes < 0 || std::string_view(answer.data(), static_cast<std::size_t>(bytes)) != to_.answer) return;
    send_descriptor();
  }

 private:
  void send_descriptor() {
    Greeting greeting{own_rank_, {}};
    std::copy_n(to_.key.begin(), kTokenBytes, greeting.key.begin());
    const std::string_view bytes(reinterpret_cast<const char*>(&greeting), sizeof greeting);
    static_cast<void>(watch::send_with(socket_.get(), bytes, {&descriptor_, 1}));
  }

  Invitation to_;
  Fd socket_;
  int descriptor_;
  int own_rank_;
  bool done_ = false;
};

/// The sender of the descriptor in the message, if it is a message of this job.
struct Received {
  int rank;
  Fd descriptor;
};

std::optional<Received> receive(int socket, const std::string& key) {
  Greeting greeting;
  watch::Attached attached;
  const ssize_t bytes =
      watch::receive_with(socket, {reinterpret_cast<char*>(&greeting), sizeof greeting}, attached);
  const bool genuine = bytes == static_cast<ssize_t>(sizeof greeting) && attached.descriptors.size() == 1 &&
                       std::string_view(greeting.key.data(), greeting.key.size()) == key;
  if (!genuine) return std::nullopt;
  return Received{greeting.rank, std::move(attached.descriptors.front())};
}

/// The processes that have connected to this one, and not sent their descriptor yet.
class Arrivals {
 public:
  Arrivals(Fd listener, const Invitation& own) : listener_(std::move(listener)), own_(own) {}

  void add_to(std::vector<pollfd>& polled) const {
    polled.push_back({listener_.get(), POLLIN, 0});
    for (const Fd& connection : connections_) polled.push_back({connection.get(), POLLIN, 0});
  }

  /// What has come, after a wait for what `add_to` put at the end of a list.
  std::vector<Received> take(std::span<const pollfd> polled) {
    std::vector<Received> arrived;
    for (std::size_t i = connections_.size(); i-- > 0;) {
      if (polled[i + 1].revents == 0) continue;
      if (std::optional<Received> one = receive(connections_[i].get(), own_.key))
        arrived.push_back(std::move(*one));
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (polled[0].revents != 0) accept();
    return arrived;
  }

 private:
  void accept() {
    for (Fd& connection : watch::accept_all(listener_).sockets) {
      static_cast<void>(::send(connection.get(), own_.answer.data(), own_.answer.size(), MSG_NOSIGNAL));
      connections_.push_back(std::move(connection));
    }
  }

  Fd listener_;
  const Invitation& own_;
  std::vector<Fd> connections_;
};

/// Sends and receives until all is done that can be, or the limit has passed.
void exchange_all(std::vector<Delivery> deliveries, Arrivals arrivals, std::chrono::milliseconds limit,
                  std::vector<int>& missing, const std::function<void(int, int)>& received) {
  constexpr std::chrono::milliseconds kUntilNextTry{5};
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit;
  while (true) {
    std::erase_if(deliveries, [](const Delivery& delivery) { return delivery.done(); });
    if (missing.empty() && deliveries.empty()) return;
    std::vector<pollfd> polled(deliveries.size());
    std::ranges::transform(deliveries, polled.begin(), &Delivery::to_poll);
    arrivals.add_to(polled);
    const bool queueing = std::ranges::any_of(deliveries, &Delivery::is_queueing);
    watch::poll_until(polled, queueing ? std::min(end, Clock::now() + kUntilNextTry) : end);
    const bool is_last = Clock::now() >= end;
    for (std::size_t i = 0; i < deliveries.size(); ++i) {
      if (deliveries[i].is_queueing())
        deliveries[i].connect();
      else if (polled[i].revents != 0)
        deliveries[i].read_answer();
    }
    for (const Received& one : arrivals.take(std::span<const pollfd>(polled).subspan(deliveries.size()))) {
      const auto expected = std::ranges::find(missing, one.rank);
      if (expected == missing.end()) continue;
      received(one.rank, one.descriptor.get());
      missing.erase(expected);
    }
    if (is_last) return;  // with what had come in time, however late this thread got a core
  }
}

}  // namespace

std::vector<int> exchange_descriptors(const DescriptorExchangeOptions& options, int descriptor,
                                      const std::function<void(int, int)>& received) {
  Invitation own{watch::random_token(), watch::random_token(), watch::random_token()};
  COHORT_CHECK(own.name.size() == kTokenBytes);
  Fd listener = watch::listen_local(own.name, SOCK_SEQPACKET);
  const bool takes_part = listener && descriptor >= 0;
  const std::vector<std::string> blobs = options.exchange(takes_part ? to_blob(own) : "");
  // Nobody sends to a worker that has nothing to send or cannot listen, so nothing is waited for.
  if (!takes_part) return options.peers;

  std::vector<int> silent;
  std::vector<int> missing;
  std::vector<Delivery> deliveries;
  for (const int peer : options.peers) {
    Invitation invitation = parse_invitation(blobs[static_cast<std::size_t>(peer)]);
    (invitation.name.empty() ? silent : missing).push_back(peer);
    if (!invitation.name.empty()) deliveries.emplace_back(std::move(invitation), options.rank, descriptor);
  }
  exchange_all(std::move(deliveries), Arrivals(std::move(listener), own), options.limit, missing, received);
  silent.insert(silent.end(), missing.begin(), missing.end());
  return silent;
}

}  // namespace cohort
