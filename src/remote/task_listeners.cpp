#include "task_listeners.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

#include "base/host_name.h"
#include "base/memory_file.h"

#include "introduction.h"
#include "socket_address.h"

namespace cohort::remote {
namespace {

using watch::Fd;

/// Out of reach for other hosts, which need not be kept out then.
Fd listen_on_loopback() {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return {};
  }
  return socket;
}

[[noreturn]] void refuse(const ClusterTask& task, std::string_view what) {
  throw Unavailable("{} cannot be given {}: {}", name_of(task), what, std::strerror(errno));
}

}  // namespace

TaskListeners listen_for(const ClusterTask& task, Interfaces interfaces) {
  TaskListeners listeners;
  listeners.network = interfaces == Interfaces::kAll ? listen_on_network() : listen_on_loopback();
  if (!listeners.network) refuse(task, "a TCP port to listen on");
  listeners.local = listen_locally();
  if (task.type == "ps") {
    listeners.memory.reset(make_memory_file("cohort-store"));
    if (!listeners.memory) refuse(task, "a memory file");
  }
  listeners.address = {.task = task,
                       .host = host_name(),
                       .network = network_addresses(listeners.network.get()),
                       .local = local_name(listeners.local.get())};
  return listeners;
}

std::string random_secret() {
  std::string secret(32, '\0');
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw Unavailable("the system has no random numbers: {}", std::strerror(errno));
  return secret;
}

}  // namespace cohort::remote
