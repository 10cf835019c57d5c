// Which member is on which node; the same on all members. The members of a node are numbered by rank; those
// with the same number on every node form a lane, among which a part of the data travels. There are as many
// lanes as the smallest node has members.
#pragma once

#include <vector>

namespace cohort::network {

class Topology {
 public:
  /// `node_of[r]` is the node of member r; nodes are numbered from 0, and `rank` is this member.
  Topology(const std::vector<int>& node_of, int rank);

  [[nodiscard]] int members() const noexcept { return static_cast<int>(node_ranks_.size()); }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int nodes() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int lanes() const noexcept { return lanes_; }
  [[nodiscard]] int most_members_on_a_node() const noexcept { return most_members_; }
  /// Whether the ranks of each node's members follow those of the node before.
  [[nodiscard]] bool ranks_follow_nodes() const noexcept { return ranks_follow_nodes_; }
  /// Whether no node has several members.
  [[nodiscard]] bool all_alone() const noexcept { return members() == nodes(); }

  /// The members of a node, by rank.
  [[nodiscard]] const std::vector<int>& members_of(int node) const noexcept {
    return ranks_[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] int members_on(int node) const noexcept { return static_cast<int>(members_of(node).size()); }

  [[nodiscard]] int node_of(int rank) const noexcept { return node_rank(rank).node; }
  /// The rank of a member among those of its node.
  [[nodiscard]] int local_rank_of(int rank) const noexcept { return node_rank(rank).local_rank; }

  [[nodiscard]] int own_node() const noexcept { return node_of(rank_); }
  [[nodiscard]] int own_local_rank() const noexcept { return local_rank_of(rank_); }
  [[nodiscard]] const std::vector<int>& local_members() const noexcept { return members_of(own_node()); }
  [[nodiscard]] bool is_leader() const noexcept { return own_local_rank() == 0; }

  /// The member of `node` that acts for the member `rank` of another node: the one with the same local rank,
  /// modulo the node's size.
  [[nodiscard]] int agent_of(int rank, int node) const noexcept {
    return members_of(node)[static_cast<std::size_t>(local_rank_of(rank) % members_on(node))];
  }

  /// Whether the ranks of this node's members follow each other.
  [[nodiscard]] bool local_ranks_are_consecutive() const noexcept {
    return local_members().back() - local_members().front() + 1 == static_cast<int>(local_members().size());
  }

 private:
  struct NodeRank {
    int node = 0;
    int local_rank = 0;
  };
  [[nodiscard]] const NodeRank& node_rank(int rank) const noexcept {
    return node_ranks_[static_cast<std::size_t>(rank)];
  }

  int rank_;
  int lanes_ = 1;
  int most_members_ = 1;
  bool ranks_follow_nodes_;
  std::vector<NodeRank> node_ranks_;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace cohort::network
