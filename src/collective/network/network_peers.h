// The Peers of a registered algorithm over several nodes: messages go through the
// transport, even between members of one node, with tags that no other collective has.
#pragma once

#include <cohort/collective/algorithm.h>

#include "hierarchy_context.h"

namespace cohort::network {

class NetworkPeers final : public Peers {
 public:
  explicit NetworkPeers(HierarchyContext& context) : context_(context) {}

  [[nodiscard]] int rank() const noexcept override { return context_.topology.rank(); }
  [[nodiscard]] int size() const noexcept override { return context_.topology.members(); }
  [[nodiscard]] int node_of(int member) const noexcept override { return context_.topology.node_of(member); }
  [[nodiscard]] Task<> send(int to, std::span<const std::byte> data, int tag) override;
  [[nodiscard]] Task<> receive(int from, std::span<std::byte> into, int tag) override;
  [[nodiscard]] std::shared_ptr<std::byte> scratch(std::size_t bytes) override {
    return context_.wire.scratch_pool().shared_scratch(bytes);
  }

 private:
  [[nodiscard]] int tag_of_turn(int other, int tag) const;

  HierarchyContext& context_;
};

}  // namespace cohort::network
