// The Communicator that make_node_communicators and make_network_communicators return: a handle on its
// implementation. Its Works may outlive it, since they co-own the implementation.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "collective/communicator_base.h"

#include "node_communicator_impl.h"

namespace cohort::node {

class NodeCommunicator final : public CommunicatorBase {
 public:
  NodeCommunicator(std::shared_ptr<NodeCommunicatorImpl> impl, const CommunicationOptions& options)
      : CommunicatorBase(impl->rank(), impl->group().members(), options), impl_(std::move(impl)) {}
  ~NodeCommunicator() override { impl_->close(); }

  NodeCommunicator(const NodeCommunicator&) = delete;
  NodeCommunicator& operator=(const NodeCommunicator&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override {
    return impl_->reaches_other_nodes() ? "network" : "node";
  }
  [[nodiscard]] std::string_view group_name() const noexcept override { return impl_->group().name(); }
  [[nodiscard]] std::string_view last_algorithm() const noexcept override { return impl_->last_algorithm(); }
  [[nodiscard]] std::string_view last_choice() const noexcept override { return impl_->last_choice(); }
  [[nodiscard]] std::vector<TuningFigure> tuning() const override { return impl_->tuning(); }
  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int> color, int key) override {
    std::optional<NewControlBlock> block;
    SplitContribution contribution;
    if (color) {
      block.emplace(impl_->group().is_one_process());
      contribution = {block->location(), impl_->free_context_ids()};
    }
    const std::vector<SplitMember> split_members = exchange_split(color, key, contribution);
    if (!block) return nullptr;
    return std::make_unique<NodeCommunicator>(impl_->split(*color, split_members, std::move(*block)),
                                              options());
  }
  void abort(const Error& error) override { impl_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return impl_->failure(); }

 private:
  Work begin(const CollectiveCall& call) override { return impl_->start(call); }
  void execute(const CollectiveCall& call) override { impl_->run(call); }

  std::shared_ptr<NodeCommunicatorImpl> impl_;
};

}  // namespace cohort::node
