#include "bruck.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "stream.h"

namespace cohort::network {
namespace {

/// What all members know after the round of this distance, and did not before.
int nodes_in_round(const Lane& lane, int distance) { return std::min(distance, lane.size() - distance); }

std::size_t index(int step) { return static_cast<std::size_t>(step); }

}  // namespace

Task<> bruck_all_gather(Lane lane, const NodeBlocks& blocks, std::byte* data, int tag) {
  const std::vector<std::size_t> begins = blocks.begins_from(lane.index());
  for (int distance = 1; distance < lane.size(); distance *= 2) {
    const int nodes = nodes_in_round(lane, distance);
    const std::size_t arriving = begins[index(distance)];
    co_await exchange(
        lane, tag, {lane.neighbour(-distance), data, begins[index(nodes)]},
        {lane.neighbour(distance), data + arriving, begins[index(distance + nodes)] - arriving});
  }
}

Task<> bruck_reduce_scatter(Lane lane, const NodeBlocks& blocks, std::byte* data, Arithmetic arithmetic,
                            int tag) {
  const std::vector<std::size_t> begins = blocks.begins_from(lane.index());
  const Wire::Scratch scratch = lane.scratch(begins.back());
  for (int distance = static_cast<int>(std::bit_ceil(static_cast<unsigned>(lane.size())) / 2); distance > 0;
       distance /= 2) {
    const int nodes = nodes_in_round(lane, distance);
    const std::size_t leaving = begins[index(distance)];
    const std::size_t arriving_bytes = begins[index(nodes)];
    co_await exchange(lane, tag,
                      {lane.neighbour(distance), data + leaving, begins[index(distance + nodes)] - leaving},
                      {lane.neighbour(-distance), scratch.data(), arriving_bytes});
    arithmetic.combine(scratch.data(), data, data, arriving_bytes / size_of(arithmetic.dtype));
  }
}

namespace {

/// The slots of an all-to-all on one member: that of step s has what has to go s steps in all, from the
/// member that is as many steps behind as it has gone already.
class Slots {
 public:
  Slots(const Lane& lane, const NodeBlocks& blocks)
      : lane_(lane),
        blocks_(blocks),
        longest_(blocks.longest_between()),
        scratch_(lane.scratch(capacity())) {}

  /// Its bytes, if it has gone the steps of the bits of `step` below `distance`.
  [[nodiscard]] std::size_t bytes(int step, int distance) const noexcept {
    const int gone = step & (distance - 1);
    return blocks_.bytes_between(lane_.neighbour(-gone), lane_.neighbour(step - gone));
  }
  [[nodiscard]] std::byte* data(int step) const noexcept { return scratch_.data() + index(step) * longest_; }
  /// Room for all of them.
  [[nodiscard]] std::size_t capacity() const noexcept { return index(lane_.size()) * longest_; }

 private:
  Lane lane_;
  const NodeBlocks& blocks_;
  std::size_t longest_;
  Wire::Scratch scratch_;
};

}  // namespace

Task<> bruck_all_to_all(Lane lane, const NodeBlocks& blocks, const std::byte* data, std::byte* result,
                        int tag) {
  const Slots slots(lane, blocks);
  std::size_t total = 0;
  for (int step = 0; step < lane.size(); ++step) {
    const std::size_t bytes = slots.bytes(step, 1);
    std::memcpy(slots.data(step), data + total, bytes);
    total += bytes;
  }
  const Wire::Scratch leaving = lane.scratch(slots.capacity());
  const Wire::Scratch arriving = lane.scratch(slots.capacity());
  for (int distance = 1; distance < lane.size(); distance *= 2) {
    std::size_t leaving_bytes = 0;
    std::size_t arriving_bytes = 0;
    for (int step = distance; step < lane.size(); ++step) {
      if ((step & distance) == 0) continue;
      const std::size_t bytes = slots.bytes(step, distance);
      std::memcpy(leaving.data() + leaving_bytes, slots.data(step), bytes);
      leaving_bytes += bytes;
      arriving_bytes += slots.bytes(step, 2 * distance);
    }
    co_await exchange(lane, tag, {lane.neighbour(distance), leaving.data(), leaving_bytes},
                      {lane.neighbour(-distance), arriving.data(), arriving_bytes});
    const std::byte* from = arriving.data();
    for (int step = distance; step < lane.size(); ++step) {
      if ((step & distance) == 0) continue;
      std::memcpy(slots.data(step), from, slots.bytes(step, 2 * distance));
      from += slots.bytes(step, 2 * distance);
    }
  }
  const int arrived = static_cast<int>(std::bit_ceil(static_cast<unsigned>(lane.size())));
  for (int step = 0; step < lane.size(); ++step) {
    std::memcpy(result, slots.data(step), slots.bytes(step, arrived));
    result += slots.bytes(step, arrived);
  }
}

}  // namespace cohort::network
