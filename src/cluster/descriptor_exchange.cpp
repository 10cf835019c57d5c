#include "cluster/descriptor_exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "mutual_proof.h"
#include "sockets.h"

namespace cohort {
namespace {

using watch::Fd;

constexpr std::size_t kTokenBytes = 32;

/// What each worker tells the others: where it listens, and the secret of that socket. Other processes of the
/// machine can see the name, but not the secret.
struct Invitation {
  std::string name;  ///< empty: neither listens nor sends
  std::string secret;
};

std::string to_blob(const Invitation& invitation) { return invitation.name + invitation.secret; }

Invitation parse_invitation(const std::string& blob) {
  if (blob.size() != 2 * kTokenBytes) return {};
  return {blob.substr(0, kTokenBytes), blob.substr(kTokenBytes)};
}

// The messages of a connection: the connector's nonce; the listener's, with its proof; then the descriptor,
// with its sender's rank and proof.

struct Answer {
  watch::Nonce nonce{};
  watch::Proof proof{};
};

struct Greeting {
  int rank = -1;
  watch::Proof proof{};
};

template <class T>
std::string_view bytes_of(const T& message) {
  return {reinterpret_cast<const char*>(&message), sizeof message};
}

std::string proven_text(int rank) { return fmt::format("the descriptor of worker {}", rank); }

/// A message of this kind that has come; `errno` is EAGAIN where it may still come.
template <class T>
std::optional<T> receive(const Fd& socket, watch::Attached& attached) {
  std::array<char, sizeof(T) + 1> bytes{};
  const ssize_t got = watch::receive_with(socket.get(), bytes, attached);
  if (got == static_cast<ssize_t>(sizeof(T))) {
    T message;
    std::memcpy(&message, bytes.data(), sizeof message);
    return message;
  }
  if (got >= 0) errno = EPROTO;
  return std::nullopt;
}

/// This worker's descriptor on its way to a peer: handed over once the peer has proven, as a process of this
/// user that knows its own secret, to belong to this job.
class Delivery {
 public:
  Delivery(Invitation to, int own_rank, int descriptor)
      : to_(std::move(to)), proof_(watch::Side::kConnector), descriptor_(descriptor), own_rank_(own_rank) {
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
    if (socket_) send(proof_.own_nonce(), {});
  }

  void read_answer() {
    watch::Attached nothing;
    const std::optional<Answer> answer = receive<Answer>(socket_, nothing);
    if (!answer && errno == EAGAIN) return;
    done_ = true;
    if (!answer) return;
    proof_.hear(answer->nonce);
    if (!proof_.accepts(answer->proof, to_.secret)) return;
    send(Greeting{own_rank_, proof_.prove(to_.secret, proven_text(own_rank_))}, {&descriptor_, 1});
  }

 private:
  /// A peer that does not get it is one that has ended, whom this worker will not hear of either.
  template <class T>
  void send(const T& message, std::span<const int> descriptors) {
    static_cast<void>(watch::send_with(socket_.get(), bytes_of(message), descriptors));
  }

  Invitation to_;
  watch::MutualProof proof_;
  Fd socket_;
  int descriptor_;
  int own_rank_;
  bool done_ = false;
};

/// The sender of a descriptor.
struct Received {
  int rank;
  Fd descriptor;
};

/// A process that has connected to this one.
class Arrival {
 public:
  explicit Arrival(Fd socket) : socket_(std::move(socket)), proof_(watch::Side::kListener) {}

  [[nodiscard]] pollfd to_poll() const { return {socket_.get(), POLLIN, 0}; }
  /// Nothing more will come of it.
  [[nodiscard]] bool done() const { return done_; }

  /// Its descriptor, if that has come.
  std::optional<Received> advance(const std::string& secret) {
    watch::Attached attached;
    if (!answered_) {
      const std::optional<watch::Nonce> nonce = receive<watch::Nonce>(socket_, attached);
      done_ = !nonce && errno != EAGAIN;
      if (!nonce) return std::nullopt;
      proof_.hear(*nonce);
      const Answer answer{proof_.own_nonce(), proof_.prove(secret)};
      static_cast<void>(watch::send_with(socket_.get(), bytes_of(answer), {}));
      answered_ = true;
      return std::nullopt;
    }
    const std::optional<Greeting> greeting = receive<Greeting>(socket_, attached);
    done_ = greeting || errno != EAGAIN;
    const bool is_genuine = greeting && attached.descriptors.size() == 1 &&
                            proof_.accepts(greeting->proof, secret, proven_text(greeting->rank));
    if (!is_genuine) return std::nullopt;
    return Received{greeting->rank, std::move(attached.descriptors.front())};
  }

 private:
  Fd socket_;
  watch::MutualProof proof_;
  bool answered_ = false;
  bool done_ = false;
};

/// The processes that have connected to this one, and not sent their descriptor yet.
class Arrivals {
 public:
  Arrivals(Fd listener, const Invitation& own) : listener_(std::move(listener)), own_(own) {}

  void add_to(std::vector<pollfd>& polled) const {
    polled.push_back({listener_.get(), POLLIN, 0});
    for (const Arrival& arrival : arrivals_) polled.push_back(arrival.to_poll());
  }

  /// What has come, after a wait for what `add_to` put at the end of a list.
  std::vector<Received> take(std::span<const pollfd> polled) {
    std::vector<Received> received;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      if (polled[i + 1].revents == 0) continue;
      if (std::optional<Received> one = arrivals_[i].advance(own_.secret))
        received.push_back(std::move(*one));
    }
    std::erase_if(arrivals_, [](const Arrival& arrival) { return arrival.done(); });
    if (polled[0].revents == 0) return received;
    for (Fd& socket : watch::accept_all(listener_).sockets) arrivals_.emplace_back(std::move(socket));
    return received;
  }

 private:
  Fd listener_;
  const Invitation& own_;
  std::vector<Arrival> arrivals_;
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
  Invitation own{watch::random_token(), watch::random_token()};
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
