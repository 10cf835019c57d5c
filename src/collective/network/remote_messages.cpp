#include "remote_messages.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::network {

namespace {

/// What the first message of each begins with.
struct Label {
  std::uint64_t elements = 0;
  std::uint64_t dtype = 0;
  std::uint64_t generation = 0;
};

/// Contents up to here travel with the label; the sender need not wait for its receiver then.
constexpr std::size_t kShortBytes = std::size_t{32} << 10;

/// Pieces of longer ones.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

Task<> RemoteMessages::send(const CollectiveCall& call) {
  const std::size_t bytes = call.elements * size_of(call.dtype);
  const Transport::Address to{Transport::Channel::kMessage, call.root, call.tag};
  const std::size_t carried = bytes <= kShortBytes ? bytes : 0;
  const Wire::Scratch scratch = wire_.scratch(sizeof(Label) + carried);
  const Label label{call.elements, static_cast<std::uint64_t>(call.dtype), generation_};
  std::memcpy(scratch.data(), &label, sizeof label);
  if (carried > 0) std::memcpy(scratch.data() + sizeof label, call.input, carried);
  Transport& transport = wire_.transport();
  Transfer first(transport, transport.send(to, {scratch.data(), sizeof label + carried}));
  co_await until([&] { return first.done(); });
  for (std::size_t offset = carried; offset < bytes; offset += kPieceBytes) {
    Transfer piece(transport,
                   transport.send(to, {call.input + offset, std::min(kPieceBytes, bytes - offset)}));
    co_await until([&] { return piece.done(); });
  }
}

Task<> RemoteMessages::receive(const CollectiveCall& call) {
  const Transport::Address from{Transport::Channel::kMessage, call.root, call.tag};
  const Wire::Scratch scratch = wire_.scratch(sizeof(Label) + kShortBytes);
  Transport& transport = wire_.transport();
  Label label;
  bool fits = false;
  // A message of an earlier group with the same number, which was never received there, is ignored.
  do {
    Transfer first(transport, transport.receive(from, {scratch.data(), sizeof(Label) + kShortBytes}));
    awaited_[&call] = &first;
    co_await until([&] { return first.done(); });
    awaited_.erase(&call);
    std::memcpy(&label, scratch.data(), sizeof label);
    const std::size_t carried = first.bytes() - sizeof label;
    const std::size_t bytes = label.elements * size_of(static_cast<DType>(label.dtype));
    fits = label.generation == generation_ && label.dtype == static_cast<std::uint64_t>(call.dtype) &&
           label.elements == call.elements;
    if (fits && carried > 0) std::memcpy(call.output, scratch.data() + sizeof label, carried);
    // A message that does not fit is received all the same, or it would block the next one.
    const Wire::Scratch waste = fits || bytes == carried ? Wire::Scratch() : wire_.scratch(kPieceBytes);
    for (std::size_t offset = carried; offset < bytes; offset += kPieceBytes) {
      std::byte* to = fits ? call.output + offset : waste.data();
      Transfer piece(transport, transport.receive(from, {to, std::min(kPieceBytes, bytes - offset)}));
      co_await until([&] { return piece.done(); });
    }
  } while (label.generation != generation_);
  if (fits) co_return;
  const auto dtype = static_cast<DType>(label.dtype);
  const MemberInfo& sender = members_[static_cast<std::size_t>(call.root)];
  throw InvalidArgument(
      ErrorOrigin{"receive", call.root, sender.host},
      fmt::format("receive: {} sent {}[{}] with tag {}, but member {} receives {}[{}]: dtype and elements "
                  "must agree",
                  describe(call.root, sender), to_string(dtype), label.elements, call.tag, rank_,
                  to_string(call.dtype), call.elements));
}

void RemoteMessages::withdraw(const CollectiveCall& call) {
  const auto awaited = awaited_.find(&call);
  if (awaited == awaited_.end()) return;
  awaited->second->cancel();
  awaited_.erase(awaited);
}

}  // namespace cohort::network
