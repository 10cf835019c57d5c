#include <cohort/strategy/replica_context.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/strategy/strategy.h>

#include "collective/packing/gather_tensors.h"
#include "leaf_arithmetic.h"
#include "leaf_reducer.h"
#include "reduce_scatter.h"
#include "replica_run.h"

namespace cohort {

ReplicaContext& ReplicaContext::default_replica() {
  static LoneMergePoint merge_point(nullptr);
  static ReplicaContext replica(*StrategyExtended::default_strategy(), 0, merge_point);
  return replica;
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
  or_abort_replicas([&] {
    if (extended_.has_own_cross_device_ops()) {
      const LeafList leaves(tensors.begin(), tensors.end());
      const LeafList sums = reduce_leaves(op, leaves, structure_fingerprint(leaves), options);
      for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_from(std::get<Tensor>(sums[i]));
      return;
    }
    options.validate();
    if (num_replicas_in_sync() == 1 || tensors.empty()) return;
    Communicator& communicator = extended_.begin_collective(local_replica_);
    const CommunicationScope scope(communicator, options);
    extended_.reducer(local_replica_).all_reduce(communicator, tensors, op);
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
  // Every thread outside a scope runs the default replica, but a communicator is for one thread at a time.
  if (num_replicas_in_sync() == 1) return concatenate({&own, 1}, axis);
  Communicator& communicator = extended_.begin_collective(local_replica_);
  // Counted from the front; an axis that does not exist is refused below, on every replica.
  const int along = axis < 0 ? axis + own.shape().rank() : axis;
  const CommunicationScope scope(communicator, options,
                                 Fingerprint().add(structure).add(static_cast<std::uint64_t>(along)).value());
  return concatenate(all_gather_tensors(communicator, own), axis);
}

LeafList ReplicaContext::scatter_leaves(ReduceOp op, const LeafList& leaves, std::span<const Shape> parts,
                                        int axis, std::uint64_t structure,
                                        const CommunicationOptions& options) const {
  options.validate();
  const bool alone = num_replicas_in_sync() == 1;
  std::vector<Tensor> values;
  values.reserve(leaves.size());
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (is_sparse(leaves[leaf])) {
      throw Unimplemented("reduce_scatter of {}: all_reduce takes sparse values; or densify them first",
                          describe(leaves[leaf]));
    }
    const Tensor& value = std::get<Tensor>(leaves[leaf]);
    require_part(value, parts[leaf], axis);
    if (alone && value.shape() != parts[leaf]) {
      throw InvalidArgument("reduce_scatter: the part of the only replica is {}, which is not all of {}",
                            to_string(parts[leaf]), describe(value));
    }
    values.push_back(alone ? value.clone() : std::get<Tensor>(prepared(op, value)));
    structure = with_original_dtype(structure, value, values.back());
  }
  // Every thread outside a scope runs the default replica, but a communicator is for one thread at a time.
  if (alone || values.empty()) return {values.begin(), values.end()};

  Communicator& communicator = extended_.begin_collective(local_replica_);
  Fingerprint purpose;
  purpose.add(structure);
  for (const Tensor& value : values)
    purpose.add(static_cast<std::uint64_t>(value.shape().normalize_axis(axis)));
  const CommunicationScope scope(communicator, options, purpose.value());
  return reduce_scatter_parts(communicator, op, values, parts, axis);
}

std::shared_ptr<void> ReplicaContext::meet(
    std::type_index types, void* arguments,
    const std::function<std::shared_ptr<void>(const Strategy&, std::span<void* const>)>& merge) const {
  require_current("merge_call");
  MergeRequest request{"merge_call", types, arguments,
                       [&](std::span<void* const> by_replica) { return merge(strategy(), by_replica); }};
  return merge_point_.meet(local_replica_, request);
}

}  // namespace cohort
