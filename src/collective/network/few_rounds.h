// Collectives over several nodes whose data is short, in ceil(log2 p) rounds for p nodes: one member of each
// node, its head, has the data of the whole node, and the heads exchange it along a lane of theirs. The
// collectives of long data (two_level.h) take p-1 rounds, from member to member.
//
// The lane's algorithms take any number p of members. In the round of distance d = 2^k every member sends to
// one neighbour d away and receives from the other, or they follow a binomial tree. Each member's data is
// that of its node. "In steps" means counted round the circle from this member's own, or from the root, which
// is step 0.
//
// Sums are rounded once on the node, and once in each round.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "lane.h"
#include "topology.h"

namespace cohort::network {

struct HierarchyContext;

/// An all-gather, gather, scatter, all-to-all or reduce-scatter, or a split, with blocks of one length. All
/// members have called it alike; `call` must outlive it.
[[nodiscard]] Task<> execute_in_few_rounds(HierarchyContext& context, const CollectiveCall& call);

/// How long the data of each node is in a call in which every member contributes a block of the same length.
class NodeBlocks {
 public:
  NodeBlocks(const Topology& topology, std::size_t block_bytes) : block_bytes_(block_bytes) {
    for (int node = 0; node < topology.nodes(); ++node) members_.push_back(topology.members_on(node));
  }
  /// Of a lane whose nodes have these members.
  NodeBlocks(std::vector<int> members, std::size_t block_bytes)
      : members_(std::move(members)), block_bytes_(block_bytes) {}

  [[nodiscard]] std::size_t bytes_of(int node) const noexcept { return on(node) * block_bytes_; }
  /// What the members of one node have for those of another.
  [[nodiscard]] std::size_t bytes_between(int node, int other) const noexcept {
    return on(node) * on(other) * block_bytes_;
  }

  [[nodiscard]] std::size_t longest_between() const noexcept {
    const auto most = static_cast<std::size_t>(*std::ranges::max_element(members_));
    return most * most * block_bytes_;
  }

  /// Where each node's data begins, in the order of steps from `first`; last, where all of it ends.
  [[nodiscard]] std::vector<std::size_t> begins_from(int first) const {
    std::vector<std::size_t> begins{0};
    for (std::size_t step = 0; step < members_.size(); ++step)
      begins.push_back(begins.back() + bytes_of(static_cast<int>((static_cast<std::size_t>(first) + step) %
                                                                 members_.size())));
    return begins;
  }

 private:
  [[nodiscard]] std::size_t on(int node) const noexcept {
    return static_cast<std::size_t>(members_[static_cast<std::size_t>(node)]);
  }

  std::vector<int> members_;  ///< by node
  std::size_t block_bytes_;
};

/// All-gather [Bruck et al. 1997, section 4]: what is known of d nodes goes to the member d before. Cost
/// log2(p) alpha + (p-1)/p n beta, n bytes of all together.
///
/// `data` has this node's blocks, and gets all others' after them, in steps.
[[nodiscard]] Task<> bruck_all_gather(Lane lane, const NodeBlocks& blocks, std::byte* data, int tag);

/// Reduce-scatter: the same messages backwards in time, from the longest distance to the shortest; what
/// arrives is combined [Träff 2024, "circulant"; PAT, Jeaugey 2025]. Cost  log2(p) alpha + (p-1)/p n (beta +
/// gamma), n bytes on each member.
///
/// `data` has this member's contribution to all blocks, in steps. Its own ones, at the beginning, become the
/// result; the others are overwritten.
[[nodiscard]] Task<> bruck_reduce_scatter(Lane lane, const NodeBlocks& blocks, std::byte* data,
                                          Arithmetic arithmetic, int tag);

/// All-to-all [Bruck et al. 1997, section 3]: what has to go s steps travels in the rounds of the bits of s.
/// Cost log2(p) (alpha + n/2 beta), n bytes on each member.
///
/// `data` has what this node's members have for each node, `bytes_between` of both, in steps forward.
/// Afterwards `result` has what each node had for this one, in steps backward.
[[nodiscard]] Task<> bruck_all_to_all(Lane lane, const NodeBlocks& blocks, const std::byte* data,
                                      std::byte* result, int tag);

// Gather and scatter by a binomial tree [van de Geijn 1991]: a member passes on what belongs to the members
// below it in the tree, whose steps follow its own. Cost  log2(p) alpha + (p-1)/p n beta, n bytes at the
// root.

/// The room that a member needs for its data.
[[nodiscard]] std::size_t binomial_room(const Lane& lane, const NodeBlocks& blocks, int root);

/// `data` has this node's blocks, and room for those of the steps after it: at the root it gets all of them,
/// in steps.
[[nodiscard]] Task<> binomial_gather(Lane lane, const NodeBlocks& blocks, int root, std::byte* data, int tag);

/// The root's `data` has all blocks, in steps. Elsewhere it gets this node's blocks, at the beginning.
[[nodiscard]] Task<> binomial_scatter(Lane lane, const NodeBlocks& blocks, int root, std::byte* data,
                                      int tag);

}  // namespace cohort::network
