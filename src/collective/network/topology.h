// Who is on which node, as all members know it alike. The members of a node are numbered
// by rank; those with the same number on every node form a lane, among which a part of
// the data travels. There are as many lanes as the smallest node has members.
#pragma once

#include <vector>

namespace cohort::network {

class Topology {
 public:
  /// `node_of[r]` is the node of member r; nodes are numbered from 0, and `rank` is this member.
  Topology(const std::vector<int>& node_of, int rank);

  [[nodiscard]] int members() const noexcept { return static_cast<int>(place_of_.size()); }
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

  [[nodiscard]] int node_of(int rank) const noexcept { return place(rank).node; }
  /// The number of a member within its node.
  [[nodiscard]] int number_of(int rank) const noexcept { return place(rank).number; }

  [[nodiscard]] int own_node() const noexcept { return node_of(rank_); }
  [[nodiscard]] int own_number() const noexcept { return number_of(rank_); }
  [[nodiscard]] const std::vector<int>& neighbours() const noexcept { return members_of(own_node()); }
  [[nodiscard]] bool is_leader() const noexcept { return own_number() == 0; }

  /// Who on `node` acts for a member of another node: members of equal number, as far as there are.
  [[nodiscard]] int agent_of(int rank, int node) const noexcept {
    return members_of(node)[static_cast<std::size_t>(number_of(rank) % members_on(node))];
  }

  /// Whether the ranks of this node's members follow each other.
  [[nodiscard]] bool neighbours_are_consecutive() const noexcept {
    return neighbours().back() - neighbours().front() + 1 == static_cast<int>(neighbours().size());
  }

 private:
  struct Place {
    int node = 0;
    int number = 0;
  };
  [[nodiscard]] const Place& place(int rank) const noexcept {
    return place_of_[static_cast<std::size_t>(rank)];
  }

  int rank_;
  int lanes_ = 1;
  int most_members_ = 1;
  bool ranks_follow_nodes_;
  std::vector<Place> place_of_;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace cohort::network
