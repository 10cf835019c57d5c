#include "nccl_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <type_traits>

#include <cohort/device/float16.h>

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

namespace {

/// What elements are combined in.
template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, cohort::float16> || std::is_same_v<T, cohort::bfloat16>, float, T>;

template <class W>
W combined(W a, W b, ncclRedOp_t op) {
  switch (op) {
    case ncclSum:
    case ncclAvg:
      if constexpr (std::is_integral_v<W>)
        return static_cast<W>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      else
        return a + b;
    case ncclProd:
      if constexpr (std::is_integral_v<W>)
        return static_cast<W>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    case ncclMin: return std::min(a, b);
    case ncclMax: return std::max(a, b);
    default: std::abort();
  }
}

template <class T>
void reduce_as(const std::vector<const std::byte*>& inputs, void* output, std::size_t count, ncclRedOp_t op) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto input = [&](std::size_t rank) {
      return static_cast<Wide<T>>(reinterpret_cast<const T*>(inputs[rank])[i]);
    };
    Wide<T> value = input(0);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) value = combined(value, input(rank), op);
    if (op == ncclAvg) value = static_cast<Wide<T>>(value / static_cast<Wide<T>>(inputs.size()));
    static_cast<T*>(output)[i] = static_cast<T>(value);
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: std::abort();
  }
}

void reduce(const std::vector<const std::byte*>& inputs, void* output, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op) {
  switch (type) {
    case ncclInt8: return reduce_as<std::int8_t>(inputs, output, count, op);
    case ncclUint8: return reduce_as<std::uint8_t>(inputs, output, count, op);
    case ncclInt32: return reduce_as<std::int32_t>(inputs, output, count, op);
    case ncclUint32: return reduce_as<std::uint32_t>(inputs, output, count, op);
    case ncclInt64: return reduce_as<std::int64_t>(inputs, output, count, op);
    case ncclUint64: return reduce_as<std::uint64_t>(inputs, output, count, op);
    case ncclFloat16: return reduce_as<cohort::float16>(inputs, output, count, op);
    case ncclBfloat16: return reduce_as<cohort::bfloat16>(inputs, output, count, op);
    case ncclFloat32: return reduce_as<float>(inputs, output, count, op);
    case ncclFloat64: return reduce_as<double>(inputs, output, count, op);
    default: std::abort();
  }
}

}  // namespace nccl_stand_in
