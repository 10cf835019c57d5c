#include "few_rounds.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/reduction.h>

#include "collective/task/task_group.h"
#include "two_level.h"

namespace cohort::network {

// ---- along a lane: the algorithms of Bruck et al. ----

namespace {

/// What all members know after the round of this distance, and did not before.
int nodes_in_round(const Lane& lane, int distance) { return std::min(distance, lane.size() - distance); }

std::size_t index(int step) { return static_cast<std::size_t>(step); }

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

// ---- along a lane: the binomial tree ----

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

// ---- over several nodes: the heads exchange their nodes' data ----

namespace {

constexpr int kRoundTag = 1;

/// One member of every node: its leader, or on the root's node the root.
class Heads {
 public:
  explicit Heads(const HierarchyContext& context, int root = -1)
      : context_(context), root_(root < 0 ? 0 : context.topology.node_of(root)) {
    const Topology& topology = context.topology;
    for (int node = 0; node < topology.nodes(); ++node) ranks_.push_back(topology.members_of(node).front());
    if (root >= 0) ranks_[static_cast<std::size_t>(root_)] = root;
  }

  [[nodiscard]] bool has_own() const noexcept { return own() == context_.topology.rank(); }
  [[nodiscard]] int own_local_rank() const noexcept { return context_.local_rank_of(own()); }
  [[nodiscard]] int root() const noexcept { return root_; }
  /// Only for heads, which it borrows.
  [[nodiscard]] Lane lane() const { return {context_.wire, ranks_, context_.topology.own_node()}; }

 private:
  [[nodiscard]] int own() const noexcept {
    return ranks_[static_cast<std::size_t>(context_.topology.own_node())];
  }

  const HierarchyContext& context_;
  std::vector<int> ranks_;
  int root_;
};

/// The members of the nodes from `first` on, round the circle; backwards with -1.
std::vector<int> members_in_steps(const Topology& topology, int first, int direction = 1) {
  std::vector<int> members;
  members.reserve(static_cast<std::size_t>(topology.members()));
  for (int step = 0; step < topology.nodes(); ++step) {
    const int node = (first + direction * step + topology.nodes()) % topology.nodes();
    const std::vector<int>& next = topology.members_of(node);
    members.insert(members.end(), next.begin(), next.end());
  }
  return members;
}

std::size_t bytes_of_block(const CollectiveCall& call) { return call.elements * size_of(call.dtype); }

/// Between a buffer that has blocks by rank and one that has those of `members` one after the other.
void sort_by_rank(const std::vector<int>& members, const std::byte* from, std::byte* to, std::size_t bytes) {
  for (const int rank : members) {
    std::memcpy(to + static_cast<std::size_t>(rank) * bytes, from, bytes);
    from += bytes;
  }
}
void line_up(const std::vector<int>& members, const std::byte* from, std::byte* to, std::size_t bytes) {
  for (const int rank : members) {
    std::memcpy(to, from + static_cast<std::size_t>(rank) * bytes, bytes);
    to += bytes;
  }
}

/// A collective of the node's members with their head; `at_head` is the head's buffer of all of them.
Task<> with_head(HierarchyContext& context, const CollectiveCall& call, const Heads& heads,
                 CollectiveKind kind, std::size_t elements, std::byte* at_head) {
  CollectiveCall part = call;
  part.kind = kind;
  part.op = call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op;
  part.elements = elements;
  part.root = heads.own_local_rank();
  if (kind == CollectiveKind::kScatter) {
    part.input = at_head;
  } else {
    part.output = at_head;
  }
  return on_node(context, part);
}

Task<> all_gather(HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const std::size_t bytes = bytes_of_block(call);
  const auto members = static_cast<std::size_t>(topology.members());
  const Heads heads(context);
  Wire::Scratch scratch;
  if (heads.has_own()) scratch = context.wire.scratch(members * bytes);
  co_await with_head(context, call, heads, CollectiveKind::kGather, call.elements, scratch.data());
  if (heads.has_own()) {
    const NodeBlocks blocks(topology, bytes);
    co_await bruck_all_gather(heads.lane(), blocks, scratch.data(), kRoundTag);
    sort_by_rank(members_in_steps(topology, topology.own_node()), scratch.data(), call.output, bytes);
  }
  co_await spread_on_node(context, call.dtype, call.output, members * call.elements, heads.own_local_rank());
  context.endpoint.set_algorithm("two_level_bruck");
}

Task<> gather(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t bytes = bytes_of_block(call);
  const Heads heads(context, call.root);
  const NodeBlocks blocks(context.topology, bytes);
  Wire::Scratch scratch;
  if (heads.has_own()) scratch = context.wire.scratch(binomial_room(heads.lane(), blocks, heads.root()));
  co_await with_head(context, call, heads, CollectiveKind::kGather, call.elements, scratch.data());
  if (heads.has_own())
    co_await binomial_gather(heads.lane(), blocks, heads.root(), scratch.data(), kRoundTag);
  if (context.topology.rank() == call.root)
    sort_by_rank(members_in_steps(context.topology, heads.root()), scratch.data(), call.output, bytes);
  context.endpoint.set_algorithm("two_level_binomial_tree");
}

Task<> scatter(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t bytes = bytes_of_block(call);
  const Heads heads(context, call.root);
  const NodeBlocks blocks(context.topology, bytes);
  Wire::Scratch scratch;
  if (heads.has_own()) scratch = context.wire.scratch(binomial_room(heads.lane(), blocks, heads.root()));
  if (context.topology.rank() == call.root)
    line_up(members_in_steps(context.topology, heads.root()), call.input, scratch.data(), bytes);
  if (heads.has_own())
    co_await binomial_scatter(heads.lane(), blocks, heads.root(), scratch.data(), kRoundTag);
  co_await with_head(context, call, heads, CollectiveKind::kScatter, call.elements, scratch.data());
  context.endpoint.set_algorithm("two_level_binomial_tree");
}

/// What each of this node's members has for all members, by rank, becomes what they have for the members of
/// each node, in steps forward.
void line_up_by_node(const Topology& topology, const std::byte* from, std::byte* to, std::size_t bytes) {
  const std::size_t row = static_cast<std::size_t>(topology.members()) * bytes;
  for (int step = 0; step < topology.nodes(); ++step) {
    const std::vector<int>& others = topology.members_of((topology.own_node() + step) % topology.nodes());
    for (std::size_t own = 0; own < topology.local_members().size(); ++own) {
      line_up(others, from + own * row, to, bytes);
      to += others.size() * bytes;
    }
  }
}

/// What each member has for all of this node's, in steps backward, becomes what each of these gets, by rank.
void sort_by_receiver(const Topology& topology, const std::byte* from, std::byte* to, std::size_t bytes) {
  const std::size_t row = static_cast<std::size_t>(topology.members()) * bytes;
  for (const int sender : members_in_steps(topology, topology.own_node(), -1)) {
    for (std::size_t own = 0; own < topology.local_members().size(); ++own) {
      std::memcpy(to + own * row + static_cast<std::size_t>(sender) * bytes, from, bytes);
      from += bytes;
    }
  }
}

Task<> all_to_all(HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const std::size_t bytes = bytes_of_block(call);
  const auto members = static_cast<std::size_t>(topology.members());
  const std::size_t bytes_of_node = topology.local_members().size() * members * bytes;
  const Heads heads(context);
  Wire::Scratch by_member;
  if (heads.has_own()) by_member = context.wire.scratch(bytes_of_node);
  co_await with_head(context, call, heads, CollectiveKind::kGather, members * call.elements,
                     by_member.data());
  if (heads.has_own()) {
    const NodeBlocks blocks(topology, bytes);
    const Wire::Scratch leaving = context.wire.scratch(bytes_of_node);
    const Wire::Scratch arrived = context.wire.scratch(bytes_of_node);
    line_up_by_node(topology, by_member.data(), leaving.data(), bytes);
    co_await bruck_all_to_all(heads.lane(), blocks, leaving.data(), arrived.data(), kRoundTag);
    sort_by_receiver(topology, arrived.data(), by_member.data(), bytes);
  }
  co_await with_head(context, call, heads, CollectiveKind::kScatter, members * call.elements,
                     by_member.data());
  context.endpoint.set_algorithm("two_level_bruck");
}

Task<> reduce_scatter(HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const std::size_t bytes = bytes_of_block(call);
  const auto members = static_cast<std::size_t>(topology.members());
  const Heads heads(context);
  Wire::Scratch by_rank;
  Wire::Scratch in_steps;
  if (heads.has_own()) {
    by_rank = context.wire.scratch(members * bytes);
    in_steps = context.wire.scratch(members * bytes);
  }
  co_await with_head(context, call, heads, CollectiveKind::kReduce, members * call.elements, by_rank.data());
  if (heads.has_own()) {
    const NodeBlocks blocks(topology, bytes);
    const Arithmetic arithmetic{call.dtype, call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op};
    line_up(members_in_steps(topology, topology.own_node()), by_rank.data(), in_steps.data(), bytes);
    co_await bruck_reduce_scatter(heads.lane(), blocks, in_steps.data(), arithmetic, kRoundTag);
    if (call.op == ReduceOp::kMean)
      divide_elements(call.dtype, in_steps.data(), topology.local_members().size() * call.elements, members);
  }
  co_await with_head(context, call, heads, CollectiveKind::kScatter, call.elements, in_steps.data());
  context.endpoint.set_algorithm("two_level_bruck");
}

}  // namespace

Task<> execute_in_few_rounds(HierarchyContext& context, const CollectiveCall& call) {
  switch (call.kind) {
    case CollectiveKind::kSplit:
    case CollectiveKind::kAllGather: return all_gather(context, call);
    case CollectiveKind::kGather: return gather(context, call);
    case CollectiveKind::kScatter: return scatter(context, call);
    case CollectiveKind::kAllToAll: return all_to_all(context, call);
    case CollectiveKind::kReduceScatter: return reduce_scatter(context, call);
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  throw Internal("{} has no algorithm of few rounds", to_string(call.kind));
}

}  // namespace cohort::network
