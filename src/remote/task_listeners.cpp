#include "task_listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/memory_file.h"
#include "cluster/watch_address.h"

namespace cohort::remote {
namespace {

using watch::Fd;

std::string own_host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), HOST_NAME_MAX);
  return name.data();
}

/// Out of reach for other hosts, which need not be kept out then.
Fd listen_on_loopback(std::uint16_t& port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket || ::bind(socket.get(), generic, bytes) != 0 || ::listen(socket.get(), SOMAXCONN) != 0 ||
      ::getsockname(socket.get(), generic, &bytes) != 0) {
    return {};
  }
  port = ntohs(address.sin_port);
  return socket;
}

std::string with_port(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

[[noreturn]] void refuse(const ClusterTask& task, std::string_view what) {
  throw Unavailable("{} cannot be given {}: {}", name_of(task), what, std::strerror(errno));
}

}  // namespace

TaskListeners listen_for(const ClusterTask& task, Interfaces interfaces) {
  TaskListeners listeners;
  listeners.address = {.task = task, .host = own_host(), .local = watch::random_token()};
  std::uint16_t port = 0;
  listeners.network = interfaces == Interfaces::kAll ? watch::listen_network(port) : listen_on_loopback(port);
  if (!listeners.network) refuse(task, "a TCP port to listen on");
  listeners.local = watch::listen_local(listeners.address.local);
  if (!listeners.local) refuse(task, "a local socket to listen on");
  if (task.type == "ps") {
    listeners.memory.reset(make_memory_file("cohort-store"));
    if (!listeners.memory) refuse(task, "a memory file");
  }
  if (interfaces == Interfaces::kLoopback)
    listeners.address.network.push_back(with_port("127.0.0.1", port));
  else
    for (const std::string& host : watch::own_hosts())
      listeners.address.network.push_back(with_port(host, port));
  return listeners;
}

std::string random_secret() {
  std::string secret(32, '\0');
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw Unavailable("the system has no random numbers: {}", std::strerror(errno));
  return secret;
}

}  // namespace cohort::remote
