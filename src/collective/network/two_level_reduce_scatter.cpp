#include "two_level_reduce_scatter.h"

#include <cohort/collective/crew.h>
#include <cohort/collective/reduction.h>

namespace cohort::network {
namespace {

Steps sent(Transfer transfer) {
  co_await until([&] { return transfer.done(); });
}

/// One segment of every member's block, as one member takes part in it.
class Segment {
 public:
  Segment(Site& site, const CollectiveCall& call, std::size_t begin, std::size_t elements, int tag)
      : site_(site),
        call_(call),
        begin_(begin),
        elements_(elements),
        bytes_(elements * size_of(call.dtype)),
        tag_(tag),
        op_(call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op),
        partials_(static_cast<std::size_t>(site.topology.nodes())) {}

  /// Begins to receive what other nodes have of this member's block.
  void expect_partials() {
    for (int node = 0; node < site_.topology.nodes(); ++node) {
      Wire::Room& room = partials_[static_cast<std::size_t>(node)];
      room = site_.wire.room(bytes_);
      if (node == site_.topology.own_node()) continue;
      const int agent = site_.topology.agent_of(site_.topology.rank(), node);
      receiving_.push_back(site_.wire.receive(agent, tag_, room.data(), bytes_));
    }
  }

  /// This node's sum of the block of `member`, which goes to the one who acts for that member here.
  Steps reduce_block(int member, Crew& crew) {
    const Topology& topology = site_.topology;
    const int agent = topology.agent_of(member, topology.own_node());
    const bool acts = agent == topology.rank();
    CollectiveCall part = call_;
    part.kind = CollectiveKind::kReduce;
    part.op = op_;
    part.elements = elements_;
    part.root = site_.seat_of(agent);
    part.input =
        call_.input + (static_cast<std::size_t>(member) * call_.elements + begin_) * size_of(call_.dtype);
    part.output = nullptr;
    if (acts) {
      if (member != topology.rank()) leaving_.push_back(site_.wire.room(bytes_));
      part.output = member == topology.rank()
                        ? partials_[static_cast<std::size_t>(topology.own_node())].data()
                        : leaving_.back().data();
    }
    Steps reduction = beside(crew, on_node(site_, part));
    co_await finished(reduction);
    if (acts && member != topology.rank())
      static_cast<void>(crew.add(sent(site_.wire.send(member, tag_, part.output, bytes_))));
  }

  Steps arrival_of_partials() {
    for (Transfer& transfer : receiving_) co_await until([&] { return transfer.done(); });
  }

  /// All nodes' sums, in their order.
  void sum_partials() const {
    std::vector<const std::byte*> inputs;
    for (const Wire::Room& room : partials_) inputs.push_back(room.data());
    std::byte* const output = call_.output + begin_ * size_of(call_.dtype);
    reduce_elements(call_.dtype, op_, inputs, output, elements_);
    if (call_.op == ReduceOp::kMean)
      divide_elements(call_.dtype, output, elements_, static_cast<std::size_t>(site_.topology.members()));
  }

 private:
  Site& site_;
  const CollectiveCall& call_;
  std::size_t begin_;
  std::size_t elements_;
  std::size_t bytes_;
  int tag_;
  ReduceOp op_;
  std::vector<Wire::Room> partials_;  ///< of this member's block, by node
  std::vector<Wire::Room> leaving_;   ///< of other members' blocks
  std::vector<Transfer> receiving_;
};

/// Members of the other nodes first, since their blocks have a way to go; then those of this one.
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

Steps two_level_reduce_scatter(Site& site, const CollectiveCall& call) {
  const Segments segments(call.elements, kMessageBytes / size_of(call.dtype));
  const std::vector<int> members = in_order_of_sending(site.topology);
  for (std::size_t index = 0; index < segments.count(); ++index) {
    Segment segment(site, call, segments.begin(index), segments.elements(index), tag_of_part(index));
    Crew crew;
    segment.expect_partials();
    for (const int member : members) {
      Steps reduction = segment.reduce_block(member, crew);
      co_await finished(reduction);
    }
    static_cast<void>(crew.add(segment.arrival_of_partials()));
    Steps rest = all_done(crew);
    co_await finished(rest);
    segment.sum_partials();
  }
  site.seat.algorithm = "two_level_pairwise";
}

}  // namespace cohort::network
