// The Peers of a registered algorithm on one node: messages go through the same mailbox as
// the program's own, with tags that programs cannot use.
#pragma once

#include <cohort/collective/algorithm.h>

#include "collective/task/scratch_pool.h"
#include "endpoint.h"
#include "messages.h"

namespace cohort::node {

class NodePeers final : public Peers {
 public:
  NodePeers(Endpoint& endpoint, Mailbox& mailbox) : endpoint_(endpoint), mailbox_(mailbox) {}

  [[nodiscard]] int rank() const noexcept override { return endpoint_.position().rank; }
  [[nodiscard]] int size() const noexcept override { return endpoint_.position().size; }
  [[nodiscard]] int node_of(int /*member*/) const noexcept override { return 0; }
  [[nodiscard]] Task<> send(int to, std::span<const std::byte> data, int tag) override;
  [[nodiscard]] Task<> receive(int from, std::span<std::byte> into, int tag) override;
  [[nodiscard]] std::shared_ptr<std::byte> scratch(std::size_t bytes) override {
    return scratch_pool_.shared_scratch(bytes);
  }
  /// The scratch memory, for an owner that has to keep it while others may still read it.
  [[nodiscard]] std::vector<std::shared_ptr<const Buffer>> take_scratch() { return scratch_pool_.take(); }

 private:
  [[nodiscard]] CollectiveCall message(CollectiveKind kind, int other, std::size_t bytes, int tag) const;

  Endpoint& endpoint_;
  Mailbox& mailbox_;
  ScratchPool scratch_pool_;
};

}  // namespace cohort::node
