// How long the data of each node is in a call in which every member contributes a block of the same length:
// for algorithms along a lane that move whole nodes' blocks at once. Nodes are counted from
// one of them, which is step 0, round the circle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "topology.h"

namespace cohort::network {

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

}  // namespace cohort::network
