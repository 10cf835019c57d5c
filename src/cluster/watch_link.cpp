#include "watch_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cohort::watch {
namespace {

// Precedes the text of a frame; all workers run on machines of one byte order.
struct Header {
  std::uint32_t text_bytes;
  std::uint32_t kind;
  std::int32_t subject;
  std::int32_t signal;
};

constexpr std::size_t kLongestText = 4096;

}  // namespace

Link::Link(Fd socket, Reach reach) : socket_(std::move(socket)), reach_(reach) {}

void Link::close() noexcept {
  open_ = false;
  inbox_.clear();
  outbox_.clear();
}

void Link::send(const Frame& frame) {
  if (!open_) return;
  const std::size_t text_bytes = std::min(frame.text.size(), kLongestText);
  const Header header{static_cast<std::uint32_t>(text_bytes), static_cast<std::uint32_t>(frame.kind),
                      frame.subject, frame.signal};
  outbox_.append(reinterpret_cast<const char*>(&header), sizeof header);
  outbox_.append(frame.text, 0, text_bytes);
  flush();
}

void Link::flush() {
  while (open_ && !outbox_.empty()) {
    const ssize_t sent = ::send(fd(), outbox_.data(), outbox_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      outbox_.erase(0, static_cast<std::size_t>(sent));
    } else if (sent < 0 && errno == EINTR) {
      continue;
    } else {
      // A broken link is noticed when it is read, after the frames that arrived before it broke.
      if (errno != EAGAIN) outbox_.clear();
      return;
    }
  }
}

void Link::receive() {
  char buffer[4096];
  // A stranger who sends without end gets no more of this thread and its memory.
  constexpr int kMostAtOnce = 256;
  for (int i = 0; open_ && i < kMostAtOnce; ++i) {
    const ssize_t got = ::recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      inbox_.append(buffer, static_cast<std::size_t>(got));
      last_heard = Clock::now();
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (got == 0 || errno != EAGAIN) open_ = false;
      return;
    }
  }
}

std::optional<Frame> Link::next_frame() {
  Header header{};
  if (inbox_.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, inbox_.data(), sizeof header);
  if (header.text_bytes > kLongestText || header.kind > static_cast<std::uint32_t>(kLastFrameKind)) {
    close();
    return std::nullopt;
  }
  if (inbox_.size() < sizeof header + header.text_bytes) return std::nullopt;
  Frame frame{static_cast<FrameKind>(header.kind), header.subject, header.signal,
              inbox_.substr(sizeof header, header.text_bytes)};
  inbox_.erase(0, sizeof header + header.text_bytes);
  return frame;
}

bool Link::identify() {
  const std::optional<pid_t> peer = peer_of_this_user(fd());
  if (!peer) return false;
  // 0 where the process is in a PID namespace that this one cannot see; then only the socket shows its end.
  if (*peer > 0) process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, *peer, 0)));
  return true;
}

bool Link::peer_is_dead() const {
  pollfd polled{process_.get(), POLLIN, 0};
  return process_ && ::poll(&polled, 1, 0) == 1;
}

namespace {

/// One attempt to reach a hub: says hello once connected, then waits for the hub's proof. A local hub must be
/// a process of this user before it is told anything.
class Attempt {
 public:
  explicit Attempt(const SocketAddress& to) : to_(to), proof_(Side::kConnector) { connect(); }

  [[nodiscard]] bool alive() const { return alive_; }
  /// The hub has not taken the connections that others made before; to be tried again.
  [[nodiscard]] bool is_queueing() const { return alive_ && !link_; }
  [[nodiscard]] pollfd to_poll() const {
    return {link_ ? link_->fd() : -1, static_cast<short>(greeted_ ? POLLIN : POLLOUT), 0};
  }

  void connect() {
    Fd socket = connect_to(to_);
    alive_ = socket || (errno == EAGAIN && to_.reach() == Reach::kNode);
    if (!socket) return;
    link_ = std::make_unique<Link>(std::move(socket), to_.reach());
    if (to_.reach() == Reach::kNode) alive_ = link_->identify();
  }

  /// True when the hub has proven that it knows the secret.
  bool advance(std::string_view secret) {
    if (!greeted_) {
      const std::optional<int> error = connect_error(link_->fd());
      alive_ = error.value_or(0) == 0;
      if (error != 0) return false;
      link_->send({FrameKind::kHello, -1, 0, std::string(as_text(proof_.own_nonce()))});
      greeted_ = true;
      return false;
    }
    link_->receive();
    const std::optional<Frame> frame = link_->next_frame();
    if (frame) {
      alive_ = frame->kind == FrameKind::kWelcome && is_proven(frame->text, secret);
      return alive_;
    }
    alive_ = link_->open();
    return false;
  }

  /// Proves to the hub who this is, and waits until it has accepted the link. Without a limit: if the hub has
  /// accepted it already, closing it would look like a death. If the hub ends, the loop will report it.
  std::unique_ptr<Link> confirm(std::string_view secret, int own_rank) {
    const Proof own = proof_.prove(secret, proven_text(own_rank));
    link_->confirmed = true;
    link_->send({FrameKind::kConfirm, own_rank, 0, std::string(as_text(own))});
    while (link_->open()) {
      if (const auto frame = link_->next_frame(); frame && frame->kind == FrameKind::kConfirmed) break;
      pollfd polled{link_->fd(), POLLIN, 0};
      poll_until({&polled, 1}, Clock::time_point::max());
      link_->receive();
    }
    return std::move(link_);
  }

 private:
  bool is_proven(std::string_view welcome, std::string_view secret) {
    const std::optional<Nonce> nonce = nonce_from(welcome.substr(0, sizeof(Nonce)));
    const std::optional<Proof> proof = nonce ? proof_from(welcome.substr(sizeof(Nonce))) : std::nullopt;
    if (!proof) return false;
    proof_.hear(*nonce);
    return proof_.accepts(*proof, secret);
  }

  SocketAddress to_;
  std::unique_ptr<Link> link_;
  MutualProof proof_;
  bool alive_ = false;
  bool greeted_ = false;
};

std::unique_ptr<Link> first_to_answer(std::vector<Attempt> attempts, std::string_view secret, int own_rank,
                                      std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kUntilNextTry{5};
  const Clock::time_point end = Clock::now() + limit;
  while (true) {
    std::erase_if(attempts, [](const Attempt& attempt) { return !attempt.alive(); });
    if (attempts.empty() || Clock::now() >= end) return nullptr;
    std::vector<pollfd> polled(attempts.size());
    std::transform(attempts.begin(), attempts.end(), polled.begin(),
                   [](const Attempt& attempt) { return attempt.to_poll(); });
    const bool queueing = std::ranges::any_of(attempts, &Attempt::is_queueing);
    poll_until(polled, queueing ? std::min(end, Clock::now() + kUntilNextTry) : end);
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (attempts[i].is_queueing()) attempts[i].connect();
      if (polled[i].revents != 0 && attempts[i].advance(secret)) return attempts[i].confirm(secret, own_rank);
    }
  }
}

}  // namespace

std::string proven_text(int rank) { return fmt::format("worker {}", rank); }

std::string to_blob(const Address& address) {
  return fmt::format("{}\n{}\n{}", address.local_name, address.secret, fmt::join(address.network, " "));
}

Address parse_address(std::string_view blob) {
  const auto next = [&](char separator) {
    const std::size_t end = std::min(blob.find(separator), blob.size());
    std::string part(blob.substr(0, end));
    blob.remove_prefix(std::min(end + 1, blob.size()));
    return part;
  };
  Address address;
  address.local_name = next('\n');
  address.secret = next('\n');
  while (!blob.empty()) address.network.push_back(next(' '));
  return address;
}

std::unique_ptr<Link> connect_local(const Address& address, int own_rank, std::chrono::milliseconds limit) {
  std::vector<Attempt> attempts;
  if (const std::optional<SocketAddress> to = local_address(address.local_name)) attempts.emplace_back(*to);
  return first_to_answer(std::move(attempts), address.secret, own_rank, limit);
}

std::unique_ptr<Link> connect_network(const Address& address, int own_rank, std::chrono::milliseconds limit) {
  std::vector<Attempt> attempts;
  for (const std::string& text : address.network) {
    if (const std::optional<SocketAddress> to = network_address(text)) attempts.emplace_back(*to);
  }
  return first_to_answer(std::move(attempts), address.secret, own_rank, limit);
}

}  // namespace cohort::watch
