#include "sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/system_calls.h"

namespace cohort::watch {
namespace {

Fd make_socket(const SocketAddress& address, int type) {
  return Fd(::socket(address.storage.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Fd listen_at(const SocketAddress& address, int type = SOCK_STREAM) {
  Fd socket = make_socket(address, type);
  if (!socket) return {};
  if (address.storage.ss_family == AF_INET6) {
    const int off = 0;  // IPv4 as well
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), address.get(), address.bytes) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
    return {};
  return socket;
}

void send_at_once(const Fd& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Of `host` as it stands before the colon and the port: IPv6 in brackets.
std::optional<SocketAddress> numeric_address(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  if (host.starts_with('[') && host.ends_with(']')) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.bytes = sizeof *v6;
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr) != 1)
      return std::nullopt;
    return address;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  address.bytes = sizeof *v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) != 1) return std::nullopt;
  return address;
}

std::string with_port(const std::string& host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

SocketAddress bound_address(int socket) {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) != 0)
    throw InvalidArgument("descriptor {} is no socket: {}", socket, std::strerror(errno));
  return address;
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

/// One message with room for what may come beside its bytes.
struct Message {
  explicit Message(std::span<char> bytes) : part{bytes.data(), bytes.size()} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
  }
  iovec part;
  alignas(cmsghdr)
      std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int)) + CMSG_SPACE(sizeof(ucred))> control{};
  msghdr header{};
};

}  // namespace

std::optional<SocketAddress> local_address(std::string_view name) {
  SocketAddress address;
  auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  // The zero byte in front puts the name into the abstract namespace.
  if (name.empty() || name.size() > sizeof local->sun_path - 1) return std::nullopt;
  local->sun_family = AF_UNIX;
  std::memcpy(local->sun_path + 1, name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::optional<SocketAddress> network_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0) return std::nullopt;
  return numeric_address(text.substr(0, colon), port);
}

std::string random_token() {
  std::uint64_t words[2] = {};
  if (::getrandom(words, sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
    throw Unavailable("the system has no random numbers: {}", std::strerror(errno));
  }
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

Fd listen_local(std::string_view name, int type) {
  const std::optional<SocketAddress> address = local_address(name);
  if (address) return listen_at(*address, type);
  errno = ENAMETOOLONG;
  return {};
}

Fd listen_network() {
  Fd socket = listen_at(*numeric_address("[::]", 0));
  return socket ? std::move(socket) : listen_at(*numeric_address("0.0.0.0", 0));
}

Fd listen_loopback() { return listen_at(*numeric_address("127.0.0.1", 0)); }

Fd take_over(int listener, Reach reach) {
  Fd socket(listener);
  int listening = 0;
  int type = 0;
  socklen_t bytes = sizeof listening;
  if (bound_address(listener).reach() != reach ||
      ::getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 || listening == 0 ||
      ::getsockopt(listener, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_STREAM) {
    throw InvalidArgument("descriptor {} is no {} socket that listens", listener,
                          reach == Reach::kNode ? "local stream" : "TCP");
  }
  static_cast<void>(::fcntl(listener, F_SETFD, FD_CLOEXEC));
  static_cast<void>(::fcntl(listener, F_SETFL, ::fcntl(listener, F_GETFL) | O_NONBLOCK));
  return socket;
}

std::vector<std::string> network_addresses(int listener) {
  const SocketAddress bound = bound_address(listener);
  char text[INET6_ADDRSTRLEN] = {};
  std::uint16_t port = 0;
  bool any = false;
  bool both_families = false;
  if (bound.storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(bound.storage);
    port = ntohs(v6.sin6_port);
    any = both_families = IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(bound.storage);
    port = ntohs(v4.sin_port);
    any = v4.sin_addr.s_addr == htonl(INADDR_ANY);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  }
  if (!any) return {with_port(text, port)};
  std::vector<std::string> addresses;
  for (const std::string& host : own_hosts())
    if (both_families || host.find(':') == std::string::npos) addresses.push_back(with_port(host, port));
  return addresses;
}

std::string local_name(int listener) {
  const SocketAddress bound = bound_address(listener);
  const auto& local = reinterpret_cast<const sockaddr_un&>(bound.storage);
  const std::size_t before = offsetof(sockaddr_un, sun_path) + 1;
  if (bound.bytes <= before || local.sun_path[0] != '\0')
    throw InvalidArgument("the local socket that is to be taken over has no abstract name");
  return {local.sun_path + 1, bound.bytes - before};
}

std::optional<pid_t> peer_of_this_user(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return std::nullopt;
  if (peer.uid != ::geteuid()) return std::nullopt;
  return peer.pid;
}

Fd connect_to(const SocketAddress& address, int type) {
  Fd socket = make_socket(address, type);
  if (!socket) return {};
  if (address.reach() == Reach::kNetwork) send_at_once(socket);
  if (::connect(socket.get(), address.get(), address.bytes) != 0 && errno != EINPROGRESS) return {};
  if (address.reach() == Reach::kNetwork || peer_of_this_user(socket.get())) return socket;
  errno = EPERM;
  return {};
}

std::optional<int> connect_error(int socket) {
  // Of a socket that still connects, the system knows no error either.
  pollfd polled{socket, POLLOUT, 0};
  if (uninterrupted([&] { return ::poll(&polled, 1, 0); }) == 0) return std::nullopt;
  int error = 0;
  socklen_t bytes = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

Arrivals accept_all(const Fd& listener, std::size_t most) {
  Arrivals arrivals;
  while (listener && most-- > 0) {
    SocketAddress from;
    from.bytes = sizeof from.storage;
    Fd socket(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.bytes,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!socket) {
      arrivals.out_of_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      break;
    }
    if (from.reach() == Reach::kNetwork)
      send_at_once(socket);
    else if (!peer_of_this_user(socket.get()))
      continue;
    arrivals.sockets.push_back(std::move(socket));
  }
  return arrivals;
}

ssize_t send_with(int socket, std::string_view bytes, std::span<const int> descriptors) {
  COHORT_CHECK(descriptors.size() <= kMostDescriptors);
  Message message({const_cast<char*>(bytes.data()), bytes.size()});
  if (!descriptors.empty()) {
    message.header.msg_control = message.control.data();
    message.header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message.header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  return uninterrupted([&] { return ::sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT); });
}

ssize_t receive_with(int socket, std::span<char> buffer, Attached& attached) {
  Message message(buffer);
  message.header.msg_control = message.control.data();
  message.header.msg_controllen = message.control.size();
  const ssize_t bytes =
      uninterrupted([&] { return ::recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); });
  if (bytes < 0) return bytes;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message.header); one != nullptr;
       one = CMSG_NXTHDR(&message.header, one)) {
    if (one->cmsg_level != SOL_SOCKET) continue;
    if (one->cmsg_type == SCM_CREDENTIALS) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(one), sizeof sender);
      attached.sender = sender.pid;
    } else if (one->cmsg_type == SCM_RIGHTS) {
      for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= one->cmsg_len; at += sizeof(int)) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(one) + at, sizeof descriptor);
        attached.descriptors.emplace_back(descriptor);
      }
    }
  }
  return bytes;
}

void finish_sending(const Fd& socket, std::chrono::steady_clock::time_point limit) noexcept {
  std::array<char, std::size_t{16} << 10> unread;
  while (std::chrono::steady_clock::now() < limit) {
    const ssize_t got = ::recv(socket.get(), unread.data(), unread.size(), MSG_DONTWAIT);
    if (got > 0) continue;
    int left = 0;
    if (got == 0 || errno != EAGAIN || ::ioctl(socket.get(), SIOCOUTQ, &left) != 0 || left == 0) return;
    pollfd polled{socket.get(), POLLIN, 0};
    ::poll(&polled, 1, 1);
  }
}

int milliseconds_until(std::chrono::steady_clock::time_point then) {
  if (then == std::chrono::steady_clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
}

bool poll_until(std::span<pollfd> polled, std::chrono::steady_clock::time_point until) {
  const int ready =
      uninterrupted([&] { return ::poll(polled.data(), polled.size(), milliseconds_until(until)); });
  // The system has no memory, or this process may not have so many descriptors: who asks again must not spin.
  if (ready < 0)
    std::this_thread::sleep_until(
        std::min(until, std::chrono::steady_clock::now() + std::chrono::milliseconds(5)));
  return ready > 0;
}

}  // namespace cohort::watch
