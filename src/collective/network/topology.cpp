#include "topology.h"

#include <algorithm>

namespace cohort::network {

Topology::Topology(const std::vector<int>& node_of, int rank)
    : rank_(rank), ranks_follow_nodes_(std::ranges::is_sorted(node_of)) {
  ranks_.resize(static_cast<std::size_t>(*std::ranges::max_element(node_of)) + 1);
  for (const int node : node_of) {
    std::vector<int>& members = ranks_[static_cast<std::size_t>(node)];
    const auto next = static_cast<int>(node_ranks_.size());
    node_ranks_.push_back({node, static_cast<int>(members.size())});
    members.push_back(next);
  }
  const auto by_size = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  const auto [fewest, most] = std::ranges::minmax_element(ranks_, by_size);
  lanes_ = static_cast<int>(fewest->size());
  most_members_ = static_cast<int>(most->size());
}

}  // namespace cohort::network
