#include "network_peers.h"

#include "../message_arguments.h"
#include "stream.h"

namespace cohort::network {

int NetworkPeers::tag_of_turn(int other, int tag) const {
  require_legal_message(*this, other, tag);
  // Above the tags of parts, and different in each call, so that a message left over from one call does not
  // match in the next.
  constexpr int kFirstTag = 8192;
  constexpr int kTurns = 4;
  static_assert(kFirstTag + kTurns * (kLargestTag + 1) <= kFirstUrgentTag);
  return kFirstTag + static_cast<int>(context_.endpoint.number() % kTurns) * (kLargestTag + 1) + tag;
}

Task<> NetworkPeers::send(int to, std::span<const std::byte> data, int tag) {
  co_await stream_to(context_.wire, to, tag_of_turn(to, tag), data.data(), data.size());
}

Task<> NetworkPeers::receive(int from, std::span<std::byte> into, int tag) {
  co_await stream_from(context_.wire, from, tag_of_turn(from, tag), into.data(), into.size());
}

}  // namespace cohort::network
