// The Communicator that make_node_communicators and make_network_communicators return: a handle on its
// implementation. Its Works may outlive it, since they co-own the implementation.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "collective/communicator_base.h"

#include "node_communicator_impl.h"

namespace cohort::node {

/// One member's part of a split.
struct NodeSplit {
  std::optional<int> color;
  std::optional<NewControlBlock> block;  ///< none without a color
  SplitExchange exchange;
};

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
    NodeSplit split = prepare_split(color, key);
    run_exchange(split.exchange);
    return finish_split(split);
  }

  // A split in steps, for a thread that drives several members. Nothing else is started here meanwhile.
  [[nodiscard]] NodeSplit prepare_split(std::optional<int> color, int key) const;
  [[nodiscard]] Work start_split(const NodeSplit& split) { return start_exchange(split.exchange); }
  /// Once its Work has ended: the member's group; null where it takes part in none.
  [[nodiscard]] std::unique_ptr<NodeCommunicator> finish_split(NodeSplit& split) const;

  [[nodiscard]] const std::shared_ptr<NodeCommunicatorImpl>& impl() const noexcept { return impl_; }

  void abort(const Error& error) override { impl_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return impl_->failure(); }

 private:
  Work begin(const CollectiveCall& call) override { return impl_->start(call); }
  void execute(const CollectiveCall& call) override { impl_->run(call); }

  std::shared_ptr<NodeCommunicatorImpl> impl_;
};

inline NodeSplit NodeCommunicator::prepare_split(std::optional<int> color, int key) const {
  std::optional<NewControlBlock> block;
  SplitContribution contribution;
  if (color) {
    block.emplace(impl_->group());
    contribution = {block->location(), impl_->free_context_ids()};
  }
  return {color, std::move(block), SplitExchange(size(), color, key, contribution)};
}

inline std::unique_ptr<NodeCommunicator> NodeCommunicator::finish_split(NodeSplit& split) const {
  if (!split.block) return nullptr;
  return std::make_unique<NodeCommunicator>(
      impl_->split(*split.color, split.exchange.members(), std::move(*split.block)), options());
}

}  // namespace cohort::node
