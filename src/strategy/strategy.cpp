#include <cohort/strategy/strategy.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/collective/gather_tensors.h>
#include <cohort/device/tensor_ops.h>

#include "default_replica.h"

namespace cohort {
namespace {

thread_local std::optional<StrategyScope> scope_of_set_strategy;

}  // namespace

StrategyScope::StrategyScope(StrategyExtended& extended) : extended_(extended.shared_from_this()) {
  const ContextMode& mode = current_mode();
  if (extended.is_default()) {
    if (mode.strategy == nullptr) return;
    throw WrongContext("the scope of the default strategy must not nest inside the scope of {}",
                       mode.strategy->strategy_name());
  }
  extended.require_cross_replica("scope");
  scope_.emplace(ContextMode::cross_replica(&extended));
}

Strategy get_strategy() {
  VariableOwner* active = current_mode().strategy;
  if (active == nullptr) return Strategy(StrategyExtended::default_strategy());
  // Contexts are entered by strategies alone, so the owner is one.
  return Strategy(static_cast<StrategyExtended*>(active)->shared_from_this());
}

void set_strategy(const std::optional<Strategy>& strategy) {
  const bool is_outermost =
      scope_of_set_strategy ? scope_of_set_strategy->is_innermost() : is_outside_scopes();
  if (!is_outermost || VariableCreatorScope::innermost() != nullptr) {
    throw WrongContext(
        "set_strategy was called inside a scope, which would end in another strategy than it began in; call "
        "it where no scope of a strategy, device or variable creator is open, and outside of run()");
  }
  scope_of_set_strategy.reset();
  if (strategy && !strategy->extended().is_default()) scope_of_set_strategy.emplace(strategy->extended());
}

bool has_strategy() { return current_mode().strategy != nullptr; }

ReplicaContext* get_replica_context() {
  const ContextMode& mode = current_mode();
  return mode.kind == ContextKind::kDefault ? &default_replica() : mode.replica;
}

bool in_cross_replica_context() {
  const ContextKind kind = current_mode().kind;
  return kind == ContextKind::kCrossReplica || kind == ContextKind::kUpdate;
}

std::optional<int> get_update_replica_id() {
  const ContextMode& mode = current_mode();
  return mode.kind == ContextKind::kUpdate ? std::optional(mode.local_replica) : std::nullopt;
}

Strategy ReplicaContext::strategy() const { return Strategy(extended_.shared_from_this()); }

void ReplicaContext::require_current(const char* what) const {
  const ReplicaContext* current = get_replica_context();
  if (current == this) return;
  if (current == nullptr) {
    throw WrongContext(
        "{} was called on a replica context, but this code is not inside a replica function; it is in "
        "cross-replica context",
        what);
  }
  if (&current->extended_ == &extended_) {
    throw WrongContext(
        "{} was called on the context of replica {}, but this thread runs replica {} of the same "
        "strategy; use the context given to the replica function",
        what, replica_id_in_sync_group(), current->replica_id_in_sync_group());
  }
  throw WrongContext(
      "{} was called on a replica context of {}, but {} is active: mixing different strategies", what,
      extended_.strategy_name(), current->extended_.strategy_name());
}

LeafList ReplicaContext::reduce_leaves(ReduceOp op, const LeafList& leaves, std::uint64_t structure,
                                       const CommunicationOptions& options) const {
  if (!extended_.has_own_cross_device_ops())
    return extended_.all_reduce(local_replica_, op, leaves, structure, options);
  // Operations of the program's own see the values of all replicas at once.
  const auto reduce = [&](const Strategy&, const PerReplica<LeafList>& values,
                          const PerReplica<ReduceOp>& ops, const PerReplica<std::uint64_t>& structures) {
    for (const ReduceOp other : ops.components()) {
      if (other == op) continue;
      throw InvalidArgument(
          "all_reduce: one replica asks for the {}, another for the {}; all must call it alike",
          to_string(op), to_string(other));
    }
    StructureReduction reduction{std::vector(leaves.size(), Contributions::kPerReplica),
                                 {values.components().begin(), values.components().end()},
                                 {structures.components().begin(), structures.components().end()},
                                 extended_.destinations()};
    return PerReplica<LeafList>(extended_.reduce(op, {&reduction, 1}, options).front());
  };
  return merge_call(reduce, leaves, op, structure);
}

void ReplicaContext::all_reduce_in_place(SumOrMean op, std::span<const Tensor> tensors,
                                         const CommunicationOptions& options) const {
  require_current("all_reduce_in_place");
  made_or_told([&] {
    if (!extended_.has_own_cross_device_ops())
      return extended_.all_reduce_in_place(local_replica_, op, tensors, options);
    const LeafList leaves(tensors.begin(), tensors.end());
    const LeafList sums = reduce_leaves(op, leaves, structure_fingerprint(leaves), options);
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_from(std::get<Tensor>(sums[i]));
  });
}

Tensor ReplicaContext::gather_leaf(const TensorOrSlices& value, int axis, std::uint64_t structure,
                                   const CommunicationOptions& options) const {
  if (is_sparse(value)) {
    throw Unimplemented("all_gather of {}: sparse values are gathered by all_reduce; or densify them first",
                        describe(value));
  }
  options.validate();
  const Tensor& own = std::get<Tensor>(value);
  // Every thread outside a scope runs the default replica, but a seat is for one thread at a time.
  if (num_replicas_in_sync() == 1) return concatenate({&own, 1}, axis);
  Communicator& communicator = extended_.begin_collective(local_replica_);
  // Counted from the front; an axis that does not exist is refused below, on every replica.
  const int along = axis < 0 ? axis + own.shape().rank() : axis;
  const CommunicationScope scope(communicator, options,
                                 Fingerprint().add(structure).add(static_cast<std::uint64_t>(along)).value());
  return concatenate(all_gather_tensors(communicator, own), axis);
}

}  // namespace cohort
