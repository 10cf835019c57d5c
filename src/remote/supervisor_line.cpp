#include "supervisor_line.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

namespace cohort::remote {

void SupervisorLine::send(SupervisorWord word) const {
  if (::send(descriptor_, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof word) return;
  if (errno == EAGAIN)
    throw Unavailable("a parameter server and its supervisor do not read what they tell each other");
}

std::optional<SupervisorWord> SupervisorLine::receive() const {
  SupervisorWord word{};
  if (::recv(descriptor_, &word, sizeof word, MSG_DONTWAIT) == sizeof word) return word;
  return std::nullopt;
}

std::pair<watch::Fd, watch::Fd> make_supervisor_line() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Unavailable("the system has no pair of sockets: {}", std::strerror(errno));
  return {watch::Fd(ends[0]), watch::Fd(ends[1])};
}

}  // namespace cohort::remote
