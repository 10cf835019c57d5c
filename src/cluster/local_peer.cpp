#include "local_peer.h"

#include <sys/socket.h>
#include <unistd.h>

namespace cohort::watch {

std::optional<pid_t> peer_of_this_user(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return std::nullopt;
  if (peer.uid != ::geteuid()) return std::nullopt;
  return peer.pid;
}

}  // namespace cohort::watch
