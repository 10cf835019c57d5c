#include "two_level_reduce_scatter.h"

#include <cohort/collective/reduction.h>

#include "collective/task/task_group.h"

namespace cohort::network {
namespace {

Task<> sent(Transfer transfer) {
  co_await until([&] { return transfer.done(); });
}

/// One segment of every member's block, as one member takes part in it. A node brings the sum of its
/// members, or, where the order of all ranks must be kept, the contribution of each, one after the other.
class Segment {
 public:
  Segment(HierarchyContext& context, const CollectiveCall& call, std::size_t begin, std::size_t elements,
          int tag)
      : context_(context),
        call_(call),
        begin_(begin),
        elements_(elements),
        bytes_(elements * size_of(call.dtype)),
        tag_(tag),
        in_rank_order_(context.keeps_rank_order(call)),
        op_(call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op),
        brought_(static_cast<std::size_t>(context.topology.nodes())) {}

  /// Begins to receive what other nodes contribute to this member's block.
  void expect_others() {
    for (int node = 0; node < context_.topology.nodes(); ++node) {
      Wire::Scratch& scratch = brought_[static_cast<std::size_t>(node)];
      scratch = context_.wire.scratch(bytes_of(node));
      if (node == context_.topology.own_node()) continue;
      const int agent = context_.topology.agent_of(context_.topology.rank(), node);
      receiving_.push_back(context_.wire.receive(agent, tag_, scratch.data(), bytes_of(node)));
    }
  }

  /// This node's contribution to the block of `member` goes to the member that acts for it here.
  Task<> bring_block(int member, TaskGroup& tasks) {
    const Topology& topology = context_.topology;
    const int agent = topology.agent_of(member, topology.own_node());
    const bool acts = agent == topology.rank();
    CollectiveCall part = call_;
    part.kind = in_rank_order_ ? CollectiveKind::kGather : CollectiveKind::kReduce;
    part.op = op_;
    part.elements = elements_;
    part.root = context_.local_rank_of(agent);
    part.input =
        call_.input + (static_cast<std::size_t>(member) * call_.elements + begin_) * size_of(call_.dtype);
    part.output = nullptr;
    const std::size_t bytes = bytes_of(topology.own_node());
    if (acts) {
      if (member != topology.rank()) leaving_.push_back(context_.wire.scratch(bytes));
      part.output = member == topology.rank() ? brought_[static_cast<std::size_t>(topology.own_node())].data()
                                              : leaving_.back().data();
    }
    co_await tasks.run_alongside(on_node(context_, part));
    if (acts && member != topology.rank())
      tasks.add(sent(context_.wire.send(member, tag_, part.output, bytes)));
  }

  Task<> arrival_of_others() {
    for (Transfer& transfer : receiving_) co_await until([&] { return transfer.done(); });
  }

  void combine() const {
    std::byte* const output = call_.output + begin_ * size_of(call_.dtype);
    if (in_rank_order_) return reduce_elements(call_.dtype, call_.op, by_rank(), output, elements_);
    reduce_elements(call_.dtype, op_, by_node(), output, elements_);
    if (call_.op == ReduceOp::kMean)
      divide_elements(call_.dtype, output, elements_, static_cast<std::size_t>(context_.topology.members()));
  }

 private:
  [[nodiscard]] std::size_t bytes_of(int node) const noexcept {
    return in_rank_order_ ? static_cast<std::size_t>(context_.topology.members_on(node)) * bytes_ : bytes_;
  }

  [[nodiscard]] std::vector<const std::byte*> by_node() const {
    std::vector<const std::byte*> sums;
    for (const Wire::Scratch& scratch : brought_) sums.push_back(scratch.data());
    return sums;
  }

  [[nodiscard]] std::vector<const std::byte*> by_rank() const {
    std::vector<const std::byte*> contributions;
    for (int rank = 0; rank < context_.topology.members(); ++rank) {
      const Wire::Scratch& scratch = brought_[static_cast<std::size_t>(context_.topology.node_of(rank))];
      contributions.push_back(scratch.data() +
                              static_cast<std::size_t>(context_.topology.local_rank_of(rank)) * bytes_);
    }
    return contributions;
  }

  HierarchyContext& context_;
  const CollectiveCall& call_;
  std::size_t begin_;
  std::size_t elements_;
  std::size_t bytes_;
  int tag_;
  bool in_rank_order_;
  ReduceOp op_;                         ///< of a node's members, and of nodes
  std::vector<Wire::Scratch> brought_;  ///< to this member's block, by node
  std::vector<Wire::Scratch> leaving_;  ///< to other members' blocks
  std::vector<Transfer> receiving_;
};

/// Members of the other nodes first, since their blocks take longest; then those of this one.
std::vector<int> in_order_of_sending(const Topology& topology) {
  std::vector<int> members;
  for (int step = 1; step <= topology.nodes(); ++step) {
    const std::vector<int>& next = topology.members_of((topology.own_node() + step) % topology.nodes());
    members.insert(members.end(), next.begin(), next.end());
  }
  return members;
}

}  // namespace

// A segment's sum is written to the output, which may be this member's block of the input, once the whole
// node has read that part of it.

Task<> two_level_reduce_scatter(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t blocks_per_message =
      context.keeps_rank_order(call) ? static_cast<std::size_t>(context.topology.most_members_on_a_node())
                                     : 1;
  const Segments segments(call.elements,
                          context.wire.message_bytes() / (blocks_per_message * size_of(call.dtype)));
  const std::vector<int> members = in_order_of_sending(context.topology);
  for (std::size_t index = 0; index < segments.count(); ++index) {
    Segment segment(context, call, segments.begin(index), segments.elements(index), tag_of_part(index));
    TaskGroup tasks;
    segment.expect_others();
    for (const int member : members) {
      co_await segment.bring_block(member, tasks);
    }
    tasks.add(segment.arrival_of_others());
    co_await tasks.wait_for_all();
    segment.combine();
  }
  context.endpoint.set_algorithm("two_level_pairwise");
}

}  // namespace cohort::network
