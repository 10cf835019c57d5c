#include "nccl_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace nccl_stand_in {
namespace {

/// A piece on its way, part by part.
struct Movement {
  Exchange::Piece piece;
  std::size_t moved = 0;
  [[nodiscard]] bool done() const { return moved == piece.bytes; }
};

std::vector<Movement> movements(const std::vector<Exchange::Piece>& pieces) {
  std::vector<Movement> all;
  for (const Exchange::Piece& piece : pieces) {
    if (piece.bytes > 0) all.push_back({piece});
  }
  return all;
}

bool advance_send(Movement& send, Channel& channel) {
  if (channel.written.load() != channel.read.load()) return false;
  const std::size_t bytes = std::min(Channel::kRoom, send.piece.bytes - send.moved);
  std::memcpy(channel.data.data(), send.piece.data + send.moved, bytes);
  channel.bytes = bytes;
  send.moved += bytes;
  channel.written.fetch_add(1);
  return true;
}

bool advance_receive(Movement& receive, Channel& channel) {
  if (channel.written.load() == channel.read.load()) return false;
  // Ranks that disagree on the length hang, as they may with NCCL.
  if (channel.bytes > receive.piece.bytes - receive.moved) return false;
  std::memcpy(receive.piece.data + receive.moved, channel.data.data(), channel.bytes);
  receive.moved += channel.bytes;
  channel.read.fetch_add(1);
  return true;
}

/// Pieces with one peer go in their order.
template <class Advance>
bool advance_first_of_each_peer(std::vector<Movement>& all, Advance advance) {
  bool moved = false;
  std::vector<int> busy;
  for (Movement& movement : all) {
    if (std::ranges::count(busy, movement.piece.peer) > 0) continue;
    moved |= advance(movement);
    busy.push_back(movement.piece.peer);
  }
  std::erase_if(all, [](const Movement& movement) { return movement.done(); });
  return moved;
}

}  // namespace

void Exchange::send(int peer, const void* data, std::size_t bytes) {
  sends.push_back({peer, static_cast<std::byte*>(const_cast<void*>(data)), bytes});
}

void Exchange::receive(int peer, void* data, std::size_t bytes) {
  receives.push_back({peer, static_cast<std::byte*>(data), bytes});
}

bool Exchange::execute(const Arena& arena, const std::atomic<bool>& aborted) const {
  std::vector<Movement> leaving = movements(sends);
  std::vector<Movement> coming = movements(receives);
  while (!leaving.empty() || !coming.empty()) {
    if (aborted) return false;
    bool moved = advance_first_of_each_peer(leaving, [&](Movement& send) {
      return advance_send(send, arena.channel(arena.rank(), send.piece.peer));
    });
    moved |= advance_first_of_each_peer(coming, [&](Movement& receive) {
      return advance_receive(receive, arena.channel(receive.piece.peer, arena.rank()));
    });
    if (!moved) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  for (const std::function<void()>& conclude : conclusions) conclude();
  return true;
}

}  // namespace nccl_stand_in
