#include "watch_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

namespace cohort::watch {
namespace {

constexpr int kSocketFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;

/// A socket address of any family, with its length.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress local_address(const std::string& name) {
  SocketAddress address;
  auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  local->sun_family = AF_UNIX;
  // The zero byte in front puts the name into the abstract namespace: nothing is left in a file system.
  const std::size_t length = std::min(name.size(), sizeof local->sun_path - 1);
  std::memcpy(local->sun_path + 1, name.data(), length);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

std::optional<SocketAddress> network_address(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.bytes = sizeof *v4;
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.bytes = sizeof *v6;
    return address;
  }
  return std::nullopt;
}

Fd listen_on(const SocketAddress& address, bool both_families) {
  Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | kSocketFlags, 0));
  if (!socket) return {};
  if (both_families) {
    const int off = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), address.get(), address.bytes) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
    return {};
  return socket;
}

/// One attempt to reach a hub: says hello once connected, then waits for the right answer. A local hub must
/// be a process of this user before it is told anything.
class Attempt {
 public:
  Attempt(const SocketAddress& to, Link::Reach reach, Frame hello) : to_(to), hello_(std::move(hello)) {
    connect(reach);
  }

  [[nodiscard]] bool alive() const { return alive_; }
  /// The hub has not taken the connections that others made before; to be tried again.
  [[nodiscard]] bool is_queueing() const { return is_queueing_; }
  [[nodiscard]] pollfd to_poll() const {
    return {is_queueing_ ? -1 : link_->fd(), static_cast<short>(greeted_ ? POLLIN : POLLOUT), 0};
  }

  void connect_again() { connect(link_->reach()); }

  /// True when the hub has answered as it should.
  bool advance(const std::string& answer) {
    if (!greeted_) {
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(link_->fd(), SOL_SOCKET, SO_ERROR, &error, &size);
      alive_ = error == 0;
      if (!alive_) return false;
      link_->send(hello_);
      greeted_ = true;
      return false;
    }
    link_->receive();
    const std::optional<Frame> frame = link_->next_frame();
    if (frame) {
      alive_ = frame->kind == FrameKind::kWelcome && frame->text == answer;
      return alive_;
    }
    alive_ = link_->open();
    return false;
  }

  std::unique_ptr<Link> take() { return std::move(link_); }

 private:
  void connect(Link::Reach reach) {
    link_ = std::make_unique<Link>(Fd(::socket(to_.storage.ss_family, SOCK_STREAM | kSocketFlags, 0)), reach);
    const int status = ::connect(link_->fd(), to_.get(), to_.bytes);
    is_queueing_ = status != 0 && errno == EAGAIN && reach == Link::Reach::kNode;
    alive_ = status == 0 || is_queueing_ || errno == EINPROGRESS;
    if (status == 0 && reach == Link::Reach::kNode) alive_ = link_->identify();
  }

  SocketAddress to_;
  std::unique_ptr<Link> link_;
  Frame hello_;
  bool alive_ = false;
  bool is_queueing_ = false;
  bool greeted_ = false;
};

/// Waits until the hub has accepted this link. Without a limit: if the hub has accepted it already, closing
/// it would look like a death. If the hub ends, the loop will report it.
std::unique_ptr<Link> confirmed(std::unique_ptr<Link> link) {
  link->confirmed = true;
  link->send({FrameKind::kConfirm, -1, 0, {}});
  while (link->open()) {
    if (const std::optional<Frame> frame = link->next_frame(); frame && frame->kind == FrameKind::kConfirm)
      break;
    pollfd polled{link->fd(), POLLIN, 0};
    ::poll(&polled, 1, -1);
    link->receive();
  }
  return link;
}

std::unique_ptr<Link> first_to_answer(std::vector<Attempt> attempts, const std::string& answer,
                                      std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kUntilNextTry{5};
  const Clock::time_point end = Clock::now() + limit;
  while (true) {
    std::erase_if(attempts, [](const Attempt& attempt) { return !attempt.alive(); });
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (attempts.empty() || left.count() <= 0) return nullptr;
    std::vector<pollfd> polled(attempts.size());
    std::transform(attempts.begin(), attempts.end(), polled.begin(),
                   [](const Attempt& attempt) { return attempt.to_poll(); });
    const bool queueing = std::ranges::any_of(attempts, &Attempt::is_queueing);
    const auto wait = queueing ? std::min(left, kUntilNextTry) : left;
    ::poll(polled.data(), polled.size(), static_cast<int>(wait.count()));
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (attempts[i].is_queueing()) attempts[i].connect_again();
      if (polled[i].revents == 0 || !attempts[i].advance(answer)) continue;
      return confirmed(attempts[i].take());
    }
  }
}

Frame hello_to(const Address& address, int own_rank) { return {FrameKind::kHello, own_rank, 0, address.key}; }

}  // namespace

std::string to_blob(const Address& address) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", address.local_name, address.port, address.key, address.answer,
                     fmt::join(address.hosts, " "));
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
  const std::string port = next('\n');
  std::from_chars(port.data(), port.data() + port.size(), address.port);
  address.key = next('\n');
  address.answer = next('\n');
  while (!blob.empty()) address.hosts.push_back(next(' '));
  return address;
}

std::string random_token() {
  std::uint64_t words[2] = {};
  if (::getrandom(words, sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
    throw Unavailable("the system has no random numbers: {}", std::strerror(errno));
  }
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

Fd listen_local(const std::string& name) { return listen_on(local_address(name), false); }

Fd listen_network(std::uint16_t& port) {
  Fd socket = listen_on(*network_address("::", 0), true);
  if (!socket) socket = listen_on(*network_address("0.0.0.0", 0), false);
  if (!socket) return socket;
  SocketAddress bound;
  bound.bytes = sizeof bound.storage;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.bytes);
  port =
      ntohs(bound.storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                                                : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
  return socket;
}

std::vector<std::string> own_hosts() {
  std::vector<std::string> hosts;
  std::vector<std::string> loopback;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return hosts;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (entry->ifa_addr->sa_family == AF_INET) {
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text,
                  sizeof text);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&v6)) continue;  // unusable without its interface
      ::inet_ntop(AF_INET6, &v6, text, sizeof text);
    }
    if (text[0] == '\0') continue;
    ((entry->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : hosts).emplace_back(text);
  }
  ::freeifaddrs(list);
  return hosts.empty() ? loopback : hosts;
}

std::unique_ptr<Link> connect_local(const Address& address, int own_rank, std::chrono::milliseconds limit) {
  if (address.local_name.empty()) return nullptr;
  std::vector<Attempt> attempts;
  attempts.emplace_back(local_address(address.local_name), Link::Reach::kNode, hello_to(address, own_rank));
  return first_to_answer(std::move(attempts), address.answer, limit);
}

std::unique_ptr<Link> connect_network(const Address& address, int own_rank, std::chrono::milliseconds limit) {
  if (address.port == 0) return nullptr;
  std::vector<Attempt> attempts;
  for (const std::string& host : address.hosts) {
    const std::optional<SocketAddress> to = network_address(host, address.port);
    if (to) attempts.emplace_back(*to, Link::Reach::kNetwork, hello_to(address, own_rank));
  }
  return first_to_answer(std::move(attempts), address.answer, limit);
}

}  // namespace cohort::watch
