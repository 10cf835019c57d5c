#include "lane.h"

#include <algorithm>
#include <deque>

#include <cohort/collective/reduction.h>

#include "collective/task/task_group.h"
#include "cost_model.h"

namespace cohort::network {

Transfer Wire::send(int to, int tag, const std::byte* data, std::size_t bytes) {
  if (bytes == 0) return {};
  return {transport_, transport_.send({.member = to, .tag = first_tag_ + tag}, {data, bytes})};
}

Transfer Wire::receive(int from, int tag, std::byte* into, std::size_t bytes, const bool* permitted) {
  if (bytes == 0) return {};
  return {transport_, transport_.receive({.member = from, .tag = first_tag_ + tag}, {into, bytes}),
          permitted};
}

void Arithmetic::combine(const std::byte* first, const std::byte* second, std::byte* output,
                         std::size_t elements) const {
  if (elements == 0) return;
  const std::byte* const inputs[] = {first, second};
  reduce_elements(dtype, op, inputs, output, elements);
}

namespace {

/// `start(offset, bytes)` starts the transfer of a piece.
template <class Start>
Task<> in_pieces(std::size_t bytes, std::size_t message_bytes, Start start) {
  std::deque<Transfer> pieces;
  for (std::size_t offset = 0; offset < bytes || !pieces.empty();) {
    if (offset < bytes && pieces.size() < kPartsInFlight) {
      const std::size_t piece = std::min(message_bytes, bytes - offset);
      pieces.push_back(start(offset, piece));
      offset += piece;
      continue;
    }
    co_await until([&] { return pieces.front().done(); });
    pieces.pop_front();
  }
}

}  // namespace

Task<> stream_to(Wire& wire, int member, int tag, const std::byte* data, std::size_t bytes) {
  return in_pieces(bytes, wire.message_bytes(),
                   [&wire, member, tag, data](std::size_t offset, std::size_t piece) {
                     return wire.send(member, tag, data + offset, piece);
                   });
}

Task<> stream_from(Wire& wire, int member, int tag, std::byte* into, std::size_t bytes) {
  return in_pieces(bytes, wire.message_bytes(),
                   [&wire, member, tag, into](std::size_t offset, std::size_t piece) {
                     return wire.receive(member, tag, into + offset, piece);
                   });
}

Task<> stream_to(Lane lane, int member, int tag, const std::byte* data, std::size_t bytes) {
  return in_pieces(bytes, lane.message_bytes(),
                   [lane, member, tag, data](std::size_t offset, std::size_t piece) {
                     return lane.send(member, tag, data + offset, piece);
                   });
}

Task<> stream_from(Lane lane, int member, int tag, std::byte* into, std::size_t bytes) {
  return in_pieces(bytes, lane.message_bytes(),
                   [lane, member, tag, into](std::size_t offset, std::size_t piece) {
                     return lane.receive(member, tag, into + offset, piece);
                   });
}

Task<> exchange(Lane lane, int tag, Leaving leaving, Arriving arriving) {
  TaskGroup tasks;
  tasks.add(stream_from(lane, arriving.from, tag, arriving.into, arriving.bytes));
  tasks.add(stream_to(lane, leaving.to, tag, leaving.data, leaving.bytes));
  co_await tasks.wait_for_all();
}

}  // namespace cohort::network
