#include "fold.h"

#include <bit>

namespace cohort::network {

Fold::Fold(const Lane& lane)
    : index_(lane.index()),
      active_members_(static_cast<int>(std::bit_floor(static_cast<unsigned>(lane.size())))),
      pairs_(lane.size() - active_members_) {
  const bool even = index_ % 2 == 0;
  number_ = !has_pair() ? index_ - pairs_ : even ? -1 : index_ / 2;
}

Task<const std::byte*> Fold::enter(Lane lane, Part part, Arithmetic arithmetic) const {
  if (!has_pair()) co_return part.input;
  const std::size_t bytes = arithmetic.bytes(part.elements);
  if (sits_out()) {
    Transfer sending = lane.send(index_ + 1, part.tag, part.input, bytes);
    co_await until([&] { return sending.done(); });
    co_return part.input;
  }
  const Wire::Scratch scratch = lane.scratch(bytes);
  Transfer receiving = lane.receive(index_ - 1, part.tag, scratch.data(), bytes);
  co_await until([&] { return receiving.done(); });
  arithmetic.combine(scratch.data(), part.input, part.output, part.elements);
  co_return part.output;
}

Task<> Fold::leave(Lane lane, Part part, std::size_t element_bytes) const {
  if (!has_pair()) co_return;
  const std::size_t bytes = part.elements * element_bytes;
  Transfer transfer = sits_out() ? lane.receive(index_ + 1, part.tag, part.output, bytes)
                                 : lane.send(index_ - 1, part.tag, part.output, bytes);
  co_await until([&] { return transfer.done(); });
}

}  // namespace cohort::network
