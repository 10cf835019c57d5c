#include "topology.h"

#include <algorithm>

namespace cohort::network {

Topology::Topology(const std::vector<int>& node_of, int rank) : rank_(rank), tables_(make_tables(node_of)) {}

Topology Topology::seen_by(int rank) const {
  Topology other = *this;
  other.rank_ = rank;
  return other;
}

std::shared_ptr<const Topology::Tables> Topology::make_tables(const std::vector<int>& node_of) {
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
