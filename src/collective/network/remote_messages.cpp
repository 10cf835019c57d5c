#include "remote_messages.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "../node/node_group.h"

namespace cohort::network {

namespace {

/// Contents up to here travel with the label; the sender need not wait for its receiver then.
constexpr std::size_t kShortBytes = std::size_t{32} << 10;

/// Longest piece of longer ones.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// A long message in equal pieces, so that none of them is as short as a seal.
class Pieces {
 public:
  explicit Pieces(std::size_t bytes) : bytes_(bytes), count_((bytes + kPieceBytes - 1) / kPieceBytes) {}

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t begin(std::size_t piece) const noexcept { return bytes_ * piece / count_; }
  [[nodiscard]] std::size_t bytes(std::size_t piece) const noexcept {
    return begin(piece + 1) - begin(piece);
  }

 private:
  std::size_t bytes_;
  std::size_t count_;
};

}  // namespace

/// What the first transfer of each message begins with.
struct RemoteMessages::Label {
  std::uint64_t elements = 0;
  std::uint64_t dtype = 0;
  std::uint64_t generation = 0;
};

/// The last transfer of a long message; shorter than any piece.
struct RemoteMessages::Seal {
  std::uint64_t complete = 0;
};

RemoteMessages::RemoteMessages(Wire& wire, int rank, const std::vector<MemberInfo>& members,
                               std::uint64_t generation)
    : wire_(wire), rank_(rank), members_(members), generation_(generation) {}

RemoteMessages::~RemoteMessages() {
  for (Leftover& leftover : leftovers_) node::NodeGroup::keep_for_ever(std::move(leftover.seal));
}

Transport::Address RemoteMessages::address_of(const CollectiveCall& call) const {
  return {Transport::Channel::kMessage, call.root, call.tag};
}

Task<> RemoteMessages::send(const CollectiveCall& call) {
  sweep_leftovers();
  const std::size_t bytes = call.elements * size_of(call.dtype);
  const Transport::Address to = address_of(call);
  const bool is_long = bytes > kShortBytes;
  const std::size_t carried = is_long ? 0 : bytes;
  const Wire::Scratch scratch = wire_.scratch(sizeof(Label) + carried);
  const Label label{call.elements, static_cast<std::uint64_t>(call.dtype), generation_};
  std::memcpy(scratch.data(), &label, sizeof label);
  if (carried > 0) std::memcpy(scratch.data() + sizeof label, call.input, carried);
  Transport& transport = wire_.transport();
  Transfer transfer(transport, transport.send(to, {scratch.data(), sizeof label + carried}));
  Progress& progress = pending_[&call];
  progress = {&transfer, is_long};
  co_await until([&] { return transfer.done(); });
  if (is_long) {
    const Pieces pieces(bytes);
    for (std::size_t piece = 0; piece < pieces.count(); ++piece) {
      transfer = {transport, transport.send(to, {call.input + pieces.begin(piece), pieces.bytes(piece)})};
      co_await until([&] { return transfer.done(); });
    }
    progress.may_withdraw = false;
    const Seal seal{1};
    std::memcpy(scratch.data(), &seal, sizeof seal);
    transfer = {transport, transport.send(to, {scratch.data(), sizeof seal})};
    co_await until([&] { return transfer.done(); });
  }
  pending_.erase(&call);
}

Task<> RemoteMessages::receive(const CollectiveCall& call) {
  const Wire::Scratch scratch = wire_.scratch(sizeof(Label) + kShortBytes);
  Transport& transport = wire_.transport();
  Progress& progress = pending_[&call];
  Label label;
  bool fits = false;
  bool is_whole = false;
  do {
    Transfer first(transport,
                   transport.receive(address_of(call), {scratch.data(), sizeof(Label) + kShortBytes}));
    progress = {&first, true};
    co_await until([&] { return first.done(); });
    progress = {};
    std::memcpy(&label, scratch.data(), sizeof label);
    const std::size_t carried = first.bytes() - sizeof label;
    const std::size_t bytes = label.elements * size_of(static_cast<DType>(label.dtype));
    fits = label.generation == generation_ && label.dtype == static_cast<std::uint64_t>(call.dtype) &&
           label.elements == call.elements;
    if (fits && carried > 0) std::memcpy(call.output, scratch.data() + sizeof label, carried);
    is_whole = bytes == carried;
    if (!is_whole) is_whole = co_await receive_pieces(call, fits ? call.output : nullptr, bytes);
    // Ignored are a message that was withdrawn, and one of an earlier group with the same number that was
    // never received there.
  } while (!is_whole || label.generation != generation_);
  pending_.erase(&call);
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

// What does not fit is received all the same, or it would block the next message.
Task<bool> RemoteMessages::receive_pieces(const CollectiveCall& call, std::byte* into, std::size_t bytes) {
  const Pieces pieces(bytes);
  Transport& transport = wire_.transport();
  const Wire::Scratch waste = wire_.scratch(into == nullptr ? kPieceBytes : sizeof(Seal));
  for (std::size_t piece = 0; piece < pieces.count(); ++piece) {
    std::byte* const to = into == nullptr ? waste.data() : into + pieces.begin(piece);
    Transfer transfer(transport, transport.receive(address_of(call), {to, pieces.bytes(piece)}));
    co_await until([&] { return transfer.done(); });
    // Only a message that was withdrawn is sealed before its last piece.
    if (transfer.bytes() != pieces.bytes(piece)) co_return false;
  }
  Transfer transfer(transport, transport.receive(address_of(call), {waste.data(), sizeof(Seal)}));
  co_await until([&] { return transfer.done(); });
  Seal seal;
  std::memcpy(&seal, waste.data(), sizeof seal);
  co_return seal.complete != 0;
}

node::Withdrawal RemoteMessages::withdraw(const CollectiveCall& call) {
  const auto pending = pending_.find(&call);
  if (pending == pending_.end()) return node::Withdrawal::kArrived;
  Progress& progress = pending->second;
  if (!progress.may_withdraw) return node::Withdrawal::kInFlight;
  if (call.kind == CollectiveKind::kReceive) {
    // Looked at once per millisecond: one whose sender has been stopped just then may never be complete.
    constexpr int kMostArrivals = 200;
    if (!progress.transfer->cancel())
      return ++progress.arrivals < kMostArrivals ? node::Withdrawal::kArrived : node::Withdrawal::kInFlight;
  } else {
    Transport& transport = wire_.transport();
    auto seal = std::make_shared<const Seal>();
    Transfer sealing(transport, transport.send(address_of(call), std::as_bytes(std::span(seal.get(), 1))));
    leftovers_.push_back({std::move(seal), std::move(sealing), std::move(*progress.transfer)});
  }
  pending_.erase(pending);
  return node::Withdrawal::kTakenBack;
}

void RemoteMessages::sweep_leftovers() {
  std::erase_if(leftovers_, [](Leftover& leftover) {
    const bool piece_done = leftover.piece.done();
    return leftover.sealing.done() && piece_done;
  });
}

}  // namespace cohort::network
