#include "sockets.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::watch {
namespace {

Fd listen_on(const SocketAddress& address, bool both_families) {
  Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  if (both_families) {
    const int off = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), address.get(), address.bytes) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
    return {};
  return socket;
}

}  // namespace

std::optional<pid_t> peer_of_this_user(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return std::nullopt;
  if (peer.uid != ::geteuid()) return std::nullopt;
  return peer.pid;
}

SocketAddress local_address(const std::string& name) {
  SocketAddress address;
  auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  local->sun_family = AF_UNIX;
  // The zero byte in front puts the name into the abstract namespace.
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

}  // namespace cohort::watch
