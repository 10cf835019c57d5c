#include "binomial_tree.h"

#include <algorithm>
#include <vector>

#include "collective/task/task_group.h"
#include "stream.h"

namespace cohort::network {
namespace {

/// A member's place in the tree.
struct Place {
  Place(const Lane& lane, const NodeBlocks& blocks, int root)
      : step(lane.neighbour(-root)), size(lane.size()), begins(blocks.begins_from(root)) {
    while (step + reach < size && (step & reach) == 0) reach *= 2;
  }

  /// How many steps its blocks and those below it in the tree take, at most.
  [[nodiscard]] int below() const noexcept { return step == 0 ? size : step & -step; }

  /// Where the blocks of the step `distance` further begin, in this member's data.
  [[nodiscard]] std::size_t begin(int distance) const noexcept {
    return begins[static_cast<std::size_t>(std::min(step + distance, size))] -
           begins[static_cast<std::size_t>(step)];
  }

  int step;
  int size;
  int reach = 1;  ///< the children are 1, 2, 4 and so on steps further, below this
  std::vector<std::size_t> begins;
};

}  // namespace

std::size_t binomial_room(const Lane& lane, const NodeBlocks& blocks, int root) {
  const Place place(lane, blocks, root);
  return place.begin(place.below());
}

Task<> binomial_gather(Lane lane, const NodeBlocks& blocks, int root, std::byte* data, int tag) {
  const Place place(lane, blocks, root);
  TaskGroup receiving;
  for (int child = 1; child < place.reach; child *= 2)
    receiving.add(stream_from(lane, lane.neighbour(child), tag, data + place.begin(child),
                              place.begin(2 * child) - place.begin(child)));
  co_await receiving.wait_for_all();
  if (place.step == 0) co_return;
  co_await stream_to(lane, lane.neighbour(-place.below()), tag, data, place.begin(place.below()));
}

Task<> binomial_scatter(Lane lane, const NodeBlocks& blocks, int root, std::byte* data, int tag) {
  const Place place(lane, blocks, root);
  if (place.step > 0)
    co_await stream_from(lane, lane.neighbour(-place.below()), tag, data, place.begin(place.below()));
  TaskGroup sending;
  for (int child = place.reach / 2; child > 0; child /= 2)
    sending.add(stream_to(lane, lane.neighbour(child), tag, data + place.begin(child),
                          place.begin(2 * child) - place.begin(child)));
  co_await sending.wait_for_all();
}

}  // namespace cohort::network
