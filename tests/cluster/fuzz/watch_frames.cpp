// What a stranger sends to a watch.
#include <sys/socket.h>

#include <stdexcept>

#include "cluster/watch_link.h"
#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    throw std::runtime_error("no sockets");
  const watch::Fd stranger(ends[0]);
  watch::Link link(watch::Fd(ends[1]), watch::Reach::kNode);
  // In parts, since frames need not come as a whole.
  while (!input.empty() && link.open()) {
    const std::string_view part = input.substr(0, 1 + input.size() / 2);
    if (::send(stranger.get(), part.data(), part.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(part.size()))
      return;  // more than fits between two processes that do not wait for each other
    input.remove_prefix(part.size());
    link.receive();
    while (const auto frame = link.next_frame()) {
      if (frame->kind > watch::kLastFrameKind || frame->text.size() > 4096)
        throw std::logic_error("no frame is like this");
    }
  }
}

}  // namespace cohort::fuzz
