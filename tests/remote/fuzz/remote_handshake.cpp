// What a stranger says to an endpoint that listens, and to one that connects.
#include <sys/socket.h>

#include <stdexcept>

#include "fuzz_one.h"
#include "remote/handshake.h"

namespace cohort::fuzz {
namespace {

const remote::Identity& identity() {
  static const remote::Identity identity = [] {
    remote::Identity made;
    made.secret = "a secret of sixteen bytes or more";
    return made;
  }();
  return identity;
}

void say(std::string_view input, remote::Side side) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    throw std::runtime_error("no sockets");
  const watch::Fd stranger(ends[0]);
  remote::Handshake handshake(watch::Fd(ends[1]), remote::Reach::kNode, side, identity(), false);
  while (!input.empty() && !handshake.ended()) {
    const std::string_view part = input.substr(0, 1 + input.size() / 2);
    if (::send(stranger.get(), part.data(), part.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(part.size()))
      return;  // more than fits between two processes that do not wait for each other
    input.remove_prefix(part.size());
    handshake.advance();
  }
  using enum remote::Handshake::Stage;
  if (handshake.stage() == kProven || handshake.stage() == kDone)
    throw std::logic_error("a stranger has proved that it knows the secret");
}

}  // namespace

void fuzz_one(std::string_view input) {
  say(input, remote::Side::kListener);
  say(input, remote::Side::kConnector);
}

}  // namespace cohort::fuzz
