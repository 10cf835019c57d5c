#include "socket_address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "cluster/sockets.h"

namespace cohort::remote {
namespace {

SocketAddress own_address(int socket) {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) != 0)
    throw InvalidArgument("descriptor {} is no socket: {}", socket, std::strerror(errno));
  return address;
}

int family_of(const SocketAddress& address) {
  return address.storage.ss_family == AF_INET6 ? AF_INET : address.storage.ss_family;
}

std::string with_port(const std::string& host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace

std::optional<SocketAddress> parse_network_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::string host = text.substr(0, colon);
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0) return std::nullopt;

  SocketAddress address;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.bytes = sizeof *v6;
    if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) != 1) return std::nullopt;
    return address;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  address.bytes = sizeof *v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) != 1) return std::nullopt;
  return address;
}

std::optional<SocketAddress> abstract_local_address(const std::string& name) {
  SocketAddress address;
  auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  // The zero byte in front puts the name into the abstract namespace: nothing is left in a file system.
  if (name.empty() || name.size() > sizeof local->sun_path - 1) return std::nullopt;
  local->sun_family = AF_UNIX;
  std::memcpy(local->sun_path + 1, name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

watch::Fd listen_on_network() {
  std::uint16_t port = 0;
  watch::Fd listener = watch::listen_network(port);
  if (!listener) throw Unavailable("cannot listen for other tasks over TCP: {}", std::strerror(errno));
  return listener;
}

watch::Fd listen_locally() {
  watch::Fd listener = watch::listen_local(watch::random_token());
  if (!listener) throw Unavailable("cannot listen for tasks of this node: {}", std::strerror(errno));
  return listener;
}

watch::Fd take_over(int listener, int family) {
  watch::Fd socket(listener);
  int listening = 0;
  int type = 0;
  socklen_t bytes = sizeof listening;
  if (family_of(own_address(listener)) != family ||
      ::getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 || listening == 0 ||
      ::getsockopt(listener, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_STREAM) {
    throw InvalidArgument("descriptor {} is no {} socket that listens", listener,
                          family == AF_UNIX ? "local stream" : "TCP");
  }
  static_cast<void>(::fcntl(listener, F_SETFD, FD_CLOEXEC));
  static_cast<void>(::fcntl(listener, F_SETFL, ::fcntl(listener, F_GETFL) | O_NONBLOCK));
  return socket;
}

std::vector<std::string> network_addresses(int listener) {
  const SocketAddress bound = own_address(listener);
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
  for (const std::string& host : watch::own_hosts())
    if (both_families || host.find(':') == std::string::npos) addresses.push_back(with_port(host, port));
  return addresses;
}

std::string local_name(int listener) {
  const SocketAddress bound = own_address(listener);
  const auto& local = reinterpret_cast<const sockaddr_un&>(bound.storage);
  const std::size_t before = offsetof(sockaddr_un, sun_path) + 1;
  if (bound.bytes <= before || local.sun_path[0] != '\0')
    throw InvalidArgument("the local socket that is to be taken over has no abstract name");
  return {local.sun_path + 1, bound.bytes - before};
}

}  // namespace cohort::remote
