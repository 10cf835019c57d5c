// Which member is on which node; the same on all members. The members of a node are numbered by rank; those
// with the same number on every node form a lane, among which a part of the data travels. There are as many
// lanes as the smallest node has members.
//
// The tables have an entry for each member, so the members of a process share them.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace cohort::network {

class Topology {
 public:
  /// `node_of[r]` is the node of member r; nodes are numbered from 0, and `rank` is this member.
  Topology(const std::vector<int>& node_of, int rank);

  /// The same as another member sees it, by the same tables.
  [[nodiscard]] Topology seen_by(int rank) const;

  [[nodiscard]] int members() const noexcept { return static_cast<int>(tables_->node_ranks.size()); }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int nodes() const noexcept { return static_cast<int>(tables_->ranks.size()); }
  [[nodiscard]] int lanes() const noexcept { return static_cast<int>(tables_->lanes.size()); }
  [[nodiscard]] int most_members_on_a_node() const noexcept { return tables_->most_members; }
  /// Whether the ranks of each node's members follow those of the node before.
  [[nodiscard]] bool ranks_follow_nodes() const noexcept { return tables_->ranks_follow_nodes; }
  /// Whether no node has several members.
  [[nodiscard]] bool all_alone() const noexcept { return members() == nodes(); }

  /// The members of a node, by rank.
  [[nodiscard]] const std::vector<int>& members_of(int node) const noexcept {
    return tables_->ranks[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] int members_on(int node) const noexcept { return static_cast<int>(members_of(node).size()); }

  /// The members of this one's lane, by node; empty if it has none.
  [[nodiscard]] std::span<const int> own_lane() const noexcept {
    if (own_local_rank() >= lanes()) return {};
    return tables_->lanes[static_cast<std::size_t>(own_local_rank())];
  }
  /// The first member of each node, by node.
  [[nodiscard]] std::span<const int> leaders() const noexcept { return tables_->lanes.front(); }

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
  struct Tables {
    int most_members = 1;
    bool ranks_follow_nodes = true;
    std::vector<NodeRank> node_ranks;     ///< by rank
    std::vector<std::vector<int>> ranks;  ///< by node
    std::vector<std::vector<int>> lanes;  ///< of each, one member of every node
  };
  [[nodiscard]] static std::shared_ptr<const Tables> make_tables(const std::vector<int>& node_of);
  [[nodiscard]] const NodeRank& node_rank(int rank) const noexcept {
    return tables_->node_ranks[static_cast<std::size_t>(rank)];
  }

  int rank_;
  std::shared_ptr<const Tables> tables_;
};

inline Topology::Topology(const std::vector<int>& node_of, int rank)
    : rank_(rank), tables_(make_tables(node_of)) {}

inline Topology Topology::seen_by(int rank) const {
  Topology other = *this;
  other.rank_ = rank;
  return other;
}

inline std::shared_ptr<const Topology::Tables> Topology::make_tables(const std::vector<int>& node_of) {
  auto tables = std::make_shared<Tables>();
  tables->ranks_follow_nodes = std::ranges::is_sorted(node_of);
  tables->ranks.resize(static_cast<std::size_t>(std::ranges::max(node_of)) + 1);
  for (const int node : node_of) {
    std::vector<int>& members = tables->ranks[static_cast<std::size_t>(node)];
    const auto next = static_cast<int>(tables->node_ranks.size());
    tables->node_ranks.push_back({node, static_cast<int>(members.size())});
    members.push_back(next);
  }
  const auto by_size = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  const auto [fewest, most] = std::ranges::minmax_element(tables->ranks, by_size);
  tables->most_members = static_cast<int>(most->size());
  for (std::size_t lane = 0; lane < fewest->size(); ++lane) {
    std::vector<int>& ranks = tables->lanes.emplace_back();
    for (const std::vector<int>& members : tables->ranks) ranks.push_back(members[lane]);
  }
  return tables;
}

}  // namespace cohort::network
