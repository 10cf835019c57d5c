// The interface between the engine of a node and the network, for one member of a
// communicator over several nodes: collectives and messages that leave the node, and
// failures that other nodes report. The node engine knows no more of the network.
//
// The words are explained in docs/collectives.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>
#include <cohort/collective/tuning.h>

#include "collective/call/split_exchange.h"
#include "waiting.h"

namespace cohort::node {

class NodeCommunicatorImpl;

/// What becomes of a late message that is to be taken back.
enum class Withdrawal {
  kTakenBack,  ///< it is as if it had never been sent, or not yet been received
  kArrived,    ///< the other side has come after all; the message goes on
  kInFlight,   ///< some of it is on its way; this side no longer knows what the other one has
};

class InterNode {
 public:
  InterNode() = default;
  virtual ~InterNode() = default;
  InterNode(const InterNode&) = delete;
  InterNode& operator=(const InterNode&) = delete;

  /// A whole collective, with its parts on this node. `call` must outlive it.
  [[nodiscard]] virtual Task<> execute(const CollectiveCall& call) = 0;

  /// The same for a caller that waits, with the record of the call.
  virtual void execute_now(const CollectiveCall& call) = 0;

  /// A message to or from a member of another node.
  [[nodiscard]] virtual Task<> send(const CollectiveCall& call) = 0;
  [[nodiscard]] virtual Task<> receive(const CollectiveCall& call) = 0;

  /// The message is late; takes it back if that is possible.
  [[nodiscard]] virtual Withdrawal withdraw(const CollectiveCall& call) = 0;

  /// A reason not to wait any longer that other nodes have reported: an error of the whole group, or, once
  /// the call's deadline has passed, the members that are missing.
  [[nodiscard]] virtual std::optional<Error> check_for_failure(const CollectiveCall& call,
                                                               const Waiting& waiting) = 0;

  /// The error of the whole group, if another node has reported one; for callers that do not wait in one of
  /// its calls. Any thread may call it.
  [[nodiscard]] virtual std::optional<Error> poll_failure() = 0;

  /// Tells the members of other nodes that the group has failed. Any thread may call it.
  virtual void tell(const Error& failure) = 0;

  /// Tells them that this member leaves because of an error, after that many collectives. They fail once they
  /// wait in another one.
  virtual void tell_of_leaving(const Error& reason, std::uint64_t collectives) = 0;

  /// The figures by which algorithms between nodes are chosen, once a call has needed them.
  [[nodiscard]] virtual std::vector<TuningFigure> tuning() const = 0;

  /// The context ids that this member has free for a group.
  [[nodiscard]] virtual ContextIdSet free_context_ids() const = 0;

  /// The inter-node part of a group of `ranks`, in which this member is `member`; `free_ids` is the set of
  /// context ids that are free on all of them. Null when all are on this node. Each member makes its own.
  /// @throws Unavailable when no id is free on all of them.
  [[nodiscard]] virtual std::shared_ptr<InterNode> split(std::span<const int> ranks,
                                                         const ContextIdSet& free_ids,
                                                         NodeCommunicatorImpl& member) = 0;

  /// Whether nothing reads or writes the memory of unfinished transfers once it is destroyed.
  [[nodiscard]] virtual bool ends_transfers() const noexcept = 0;

  /// Whether threads other than the one that made the communicator may drive its calls.
  [[nodiscard]] virtual bool any_thread_may_drive() const noexcept = 0;
};

}  // namespace cohort::node
