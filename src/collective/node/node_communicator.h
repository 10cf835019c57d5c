// The Communicator that make_node_communicators and make_network_communicators return: a handle
// (NodeCommunicator) on its implementation (NodeCommunicatorImpl), where the calls of one member are. The
// handle's Works may outlive it, since they co-own the implementation.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/collective/work.h>

#include "collective/call/operation_in_flight.h"
#include "collective/communicator_base.h"
#include "endpoint.h"
#include "messages.h"

namespace cohort::node {

class OwnCommunicators;

/// The implementation of one member's communicator: its endpoints, its mailbox, and the calls that it has
/// started and not finished. Collectives of one priority go one after the other, in the order in which they
/// were started; urgent ones go on at each yield of a normal one, and messages at any time. The communicator
/// and each Work co-own it.
///
/// A thread that waits for a call drives all of them, and so does the progress thread.
class NodeCommunicatorImpl : public std::enable_shared_from_this<NodeCommunicatorImpl> {
 public:
  NodeCommunicatorImpl(const std::shared_ptr<NodeGroup>& group, int local_rank);
  ~NodeCommunicatorImpl();

  NodeCommunicatorImpl(const NodeCommunicatorImpl&) = delete;
  NodeCommunicatorImpl& operator=(const NodeCommunicatorImpl&) = delete;

  /// This member's communicator reaches beyond the node. Before the first call; `inter_node` uses `endpoint`.
  void set_inter_node(std::shared_ptr<InterNode> inter_node);
  [[nodiscard]] Endpoint& endpoint(Priority priority) noexcept {
    return endpoints_[static_cast<std::size_t>(priority)];
  }

  [[nodiscard]] bool reaches_other_nodes() const noexcept { return inter_node_ != nullptr; }

  [[nodiscard]] NodeGroup& group() const noexcept { return endpoints_.front().group(); }
  [[nodiscard]] int rank() const noexcept { return group().rank_of(position().rank); }
  [[nodiscard]] std::string_view last_algorithm() const noexcept { return latest_->algorithm(); }
  [[nodiscard]] std::string_view last_choice() const noexcept { return to_string(latest_->reason()); }
  [[nodiscard]] std::vector<TuningFigure> tuning() const;
  [[nodiscard]] std::size_t eager_bytes() const noexcept {
    return endpoints_.front().is_eager() ? kEagerCallBytes : 0;
  }

  void note_call_outside(const char* name) noexcept;
  void take_back_call_outside() noexcept;

  void run(const CollectiveCall& call);
  [[nodiscard]] Work start(const CollectiveCall& call);
  /// The context ids that are free on this member, for a group over several nodes.
  [[nodiscard]] ContextIdSet free_context_ids() const;
  /// The implementation for this member in a group of `split_members`, which it is one of. Each of them makes
  /// its own, right after the call that exchanged them. `color` is what they have in common.
  [[nodiscard]] std::shared_ptr<NodeCommunicatorImpl> split(int color,
                                                            std::span<const SplitMember> split_members,
                                                            NewControlBlock block);

  /// Any thread may call it.
  void abort(const Error& error);

  /// The error that has ended the group, if one is known here; asks for reports from other nodes first.
  [[nodiscard]] std::optional<Error> failure();

  /// Answers members of other nodes that ask whether this one is in their call. Any thread may call it; false
  /// for one that may not use the network.
  bool answer_questions() noexcept;

  /// Whether it is in a collective over several nodes, even if no thread drives that at the moment.
  [[nodiscard]] bool is_in_collective() const noexcept {
    return blocks_.load(std::memory_order_relaxed) ||
           collectives_in_flight_.load(std::memory_order_relaxed) > 0;
  }

  /// The communicator is destroyed. Calls whose Works are still held go on; the others are finished here.
  void close();

  /// Moves the calls in flight on as far as they go without waiting; true when one of them moved. Does
  /// nothing while another thread drives them.
  bool try_advance();

  [[nodiscard]] bool idle() const noexcept { return in_flight_.load(std::memory_order_acquire) == 0; }

  /// Whether a waiting thread drives this member already.
  [[nodiscard]] bool is_waited_for() const noexcept { return waiters_.load(std::memory_order_relaxed) > 0; }

 private:
  struct Operation;
  friend class WorkInFlight<NodeCommunicatorImpl>;

  using Collectives = std::deque<std::shared_ptr<Operation>>;

  [[nodiscard]] const Position& position() const noexcept { return endpoints_.front().position(); }
  void set_own_communicators(std::shared_ptr<OwnCommunicators> own);
  void set_calls_outside(std::uint64_t count) noexcept;
  void wait(const Operation& operation);
  void drive_to_end_of(const Operation& operation);
  [[nodiscard]] bool done(const Operation& operation) noexcept;
  [[nodiscard]] std::shared_ptr<Operation> find_unheld();
  bool advance();
  bool advance(Collectives& collectives);
  /// Drives it to its next yield. True when it has moved; sets `finished` at its end.
  bool advance(Operation& operation);
  [[nodiscard]] Task<> task_of(const Operation& operation);
  void check_message_for_failure(const CollectiveCall& call, const Waiting& waiting);
  [[nodiscard]] std::string who() const;
  [[nodiscard]] bool goes_to_another_node(const CollectiveCall& message) const;
  bool may_look_for_envelope(const Operation& operation) const;
  [[noreturn]] void fail_by_exception(Endpoint& endpoint, const CollectiveCall& call, bool failed_before);
  void fail_all(const Error& error);
  /// The calls in flight, which end where they stand; their memory is kept.
  std::vector<std::shared_ptr<Operation>> stop_all();
  /// Of a blocking call that has failed.
  void keep_memory_of(const CollectiveCall& call);
  void keep_memory_of(const std::shared_ptr<Operation>& message);

  std::mutex driving_;
  CallRecorder recorder_;
  std::shared_ptr<OwnCommunicators> own_communicators_;  ///< null where none reaches beyond the node
  std::shared_ptr<InterNode> inter_node_;
  std::array<Endpoint, kPriorities> endpoints_;   ///< by priority
  const Endpoint* latest_ = &endpoints_.front();  ///< of the latest blocking collective
  Mailbox mailbox_;
  NodePeers peers_;
  // From here on what holds calls: their tasks use all of the above, to their ends.
  std::array<Collectives, kPriorities> collectives_;  ///< by priority
  std::uint64_t calls_ = 0;                           ///< collectives of all priorities
  const char* latest_outside_ = nullptr;              ///< the name of the latest call outside
  std::list<std::shared_ptr<Operation>> messages_;
  /// Memory of failed calls: others may still read and write it, if they were stopped in the middle.
  std::vector<std::shared_ptr<const void>> failed_;
  std::atomic<int> in_flight_{0};
  std::atomic<int> collectives_in_flight_{0};
  std::atomic<bool> blocks_{false};  ///< in a collective over several nodes
  std::atomic<int> waiters_{0};
  std::atomic<int> starters_{0};  ///< threads that have a call to start; driving threads let them go first
};

/// One member's part of a split.
struct NodeSplit {
  std::optional<int> color;
  std::optional<NewControlBlock> block;  ///< none without a color
  SplitExchange exchange;
};

/// A member's handle.
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

  [[nodiscard]] std::size_t eager_bytes() const noexcept override { return impl_->eager_bytes(); }
  void note_call_outside(const char* name) noexcept override { impl_->note_call_outside(name); }
  void take_back_call_outside() noexcept override { impl_->take_back_call_outside(); }

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
