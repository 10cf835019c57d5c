#include "node_peers.h"

#include "../message_arguments.h"

namespace cohort::node {

CollectiveCall NodePeers::message(CollectiveKind kind, int other, std::size_t bytes, int tag) const {
  require_legal_message(*this, other, tag);
  // Above the tags of programs, and different in each call, so that a message left over from one call does
  // not match in the next.
  constexpr int kFirstTag = 1 << 16;
  constexpr std::uint64_t kTurns = 1 << 14;
  CollectiveCall message;
  message.kind = kind;
  message.root = endpoint_.group().rank_of(other);
  message.tag = kFirstTag + static_cast<int>(endpoint_.number() % kTurns) * (kLargestTag + 1) + tag;
  message.elements = bytes;
  return message;
}

Task<> NodePeers::send(int to, std::span<const std::byte> data, int tag) {
  CollectiveCall call = message(CollectiveKind::kSend, to, data.size(), tag);
  call.input = data.data();
  co_await mailbox_.send(call);
}

Task<> NodePeers::receive(int from, std::span<std::byte> into, int tag) {
  CollectiveCall call = message(CollectiveKind::kReceive, from, into.size(), tag);
  call.output = into.data();
  co_await mailbox_.receive(call);
}

}  // namespace cohort::node
