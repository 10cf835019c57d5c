#include <cohort/strategy/replica_context.h>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/strategy/strategy.h>

#include "collective_scopes.h"
#include "leaf_reduction.h"
#include "replica_run.h"

namespace cohort {
namespace {

constexpr std::uint64_t kAllReduce = fingerprint_of("all_reduce");
constexpr std::uint64_t kAllReduceInPlace = fingerprint_of("all_reduce_in_place");
constexpr std::uint64_t kAllGather = fingerprint_of("all_gather");
constexpr std::uint64_t kReduceScatter = fingerprint_of("reduce_scatter");

std::uint64_t op_number(ReduceOp op) { return static_cast<std::uint64_t>(op); }

/// An axis that does not exist is refused later, on every replica.
std::uint64_t counted_from_front(int axis, const Tensor& tensor) {
  return static_cast<std::uint64_t>(axis < 0 ? axis + tensor.shape().rank() : axis);
}

}  // namespace

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

LeafList ReplicaContext::reduce_leaves(ReduceOp op, const Leaves& leaves,
                                       const CommunicationOptions& options) const {
  const std::uint64_t fingerprint = Fingerprint()
                                        .add(kAllReduce)
                                        .add(op_number(op))
                                        .add(leaves.fingerprint)
                                        .add(converted_dtypes(op, leaves.list))
                                        .value();
  PurposeOf purpose(fingerprint, Caller::kReplica, device(), [&] {
    return PurposeWords{fmt::format("all_reduces ({}) {}", to_string(op), leaves.text.get())};
  });
  if (!extended_.has_own_cross_device_ops())
    return extended_.all_reduce_for(purpose, local_replica_, op, leaves.list, options);
  // Operations of the program's own see the values of all replicas at once.
  const auto reduce = [&](const Strategy&, const PerReplica<LeafList>& values,
                          const PerReplica<std::uint64_t>& structures) {
    StructureReduction reduction{std::vector(leaves.list.size(), Contributions::kPerReplica),
                                 {values.components().begin(), values.components().end()},
                                 {structures.components().begin(), structures.components().end()},
                                 extended_.destinations()};
    return PerReplica<LeafList>(extended_.reduce(op, {&reduction, 1}, options).front());
  };
  return merge_call_for(purpose, reduce, leaves.list, leaves.fingerprint);
}

void ReplicaContext::all_reduce_in_place(SumOrMean op, std::span<const Tensor> tensors,
                                         const CommunicationOptions& options) const {
  require_current("all_reduce_in_place");
  or_abort_replicas([&] {
    if (extended_.has_own_cross_device_ops()) {
      const LeafList list(tensors.begin(), tensors.end());
      const LeafList sums =
          reduce_leaves(op, {list, structure_fingerprint(list), StructureText(list)}, options);
      for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_from(std::get<Tensor>(sums[i]));
      return;
    }
    options.validate();
    if (num_replicas_in_sync() == 1) return;
    // The shapes are compared by the calls themselves.
    PurposeOf purpose(Fingerprint().add(kAllReduceInPlace).add(op_number(op)).add(tensors.size()).value(),
                      Caller::kReplica, device(), [&] {
                        const LeafList list(tensors.begin(), tensors.end());
                        return PurposeWords{fmt::format("all_reduces in place ({}) {}", to_string(op),
                                                        StructureText(list).get())};
                      });
    ReplicaCollective collective(extended_, local_replica_, options, purpose);
    if (tensors.empty()) return collective.communicator().barrier();  // an empty list takes part as well
    extended_.reducer(local_replica_).all_reduce(collective.communicator(), tensors, op);
  });
}

LeafList ReplicaContext::gather_leaves(const Leaves& leaves, int axis,
                                       const CommunicationOptions& options) const {
  for (const TensorOrSlices& leaf : leaves.list) {
    if (!is_sparse(leaf)) continue;
    throw Unimplemented("all_gather of {}: sparse values are gathered by all_reduce; or densify them first",
                        describe(leaf));
  }
  options.validate();
  LeafList gathered;
  gathered.reserve(leaves.list.size());
  // Every thread outside a scope runs the default replica, but a communicator is for one thread at a time.
  if (num_replicas_in_sync() == 1) {
    for (const TensorOrSlices& leaf : leaves.list)
      gathered.emplace_back(concatenate({&std::get<Tensor>(leaf), 1}, axis));
    return gathered;
  }
  Fingerprint fingerprint;
  fingerprint.add(kAllGather).add(leaves.fingerprint);
  for (const TensorOrSlices& leaf : leaves.list) fingerprint.add(counted_from_front(axis, values_of(leaf)));
  PurposeOf purpose(fingerprint.value(), Caller::kReplica, device(), [&] {
    return PurposeWords{fmt::format("all_gathers {} along axis {}", leaves.text.get(), axis)};
  });
  ReplicaCollective collective(extended_, local_replica_, options, purpose);
  if (leaves.list.empty()) collective.communicator().barrier();  // an empty structure takes part as well
  for (const TensorOrSlices& leaf : leaves.list)
    gathered.emplace_back(gathered_along(collective.communicator(), std::get<Tensor>(leaf), axis, purpose));
  return gathered;
}

LeafList ReplicaContext::scatter_leaves(ReduceOp op, const Leaves& leaves, std::span<const Shape> parts,
                                        int axis, const CommunicationOptions& options) const {
  options.validate();
  const bool alone = num_replicas_in_sync() == 1;
  std::vector<Tensor> values;
  values.reserve(leaves.list.size());
  for (std::size_t leaf = 0; leaf < leaves.list.size(); ++leaf) {
    if (is_sparse(leaves.list[leaf])) {
      throw Unimplemented("reduce_scatter of {}: all_reduce takes sparse values; or densify them first",
                          describe(leaves.list[leaf]));
    }
    const Tensor& value = std::get<Tensor>(leaves.list[leaf]);
    require_part(value, parts[leaf], axis);
    if (alone && value.shape() != parts[leaf]) {
      throw InvalidArgument("reduce_scatter: the part of the only replica is {}, which is not all of {}",
                            to_string(parts[leaf]), describe(value));
    }
    values.push_back(alone ? value.clone() : std::get<Tensor>(prepared(op, value)));
  }
  // Every thread outside a scope runs the default replica, but a communicator is for one thread at a time.
  if (alone) return {values.begin(), values.end()};

  Fingerprint fingerprint;
  fingerprint.add(kReduceScatter).add(op_number(op)).add(leaves.fingerprint);
  fingerprint.add(converted_dtypes(op, leaves.list));
  for (const Tensor& value : values) fingerprint.add(counted_from_front(axis, value));
  PurposeOf purpose(fingerprint.value(), Caller::kReplica, device(), [&] {
    return PurposeWords{
        fmt::format("reduce_scatters ({}) {} along axis {}", to_string(op), leaves.text.get(), axis)};
  });
  ReplicaCollective collective(extended_, local_replica_, options, purpose);
  if (values.empty()) collective.communicator().barrier();  // an empty structure takes part as well
  return reduce_scatter_parts(collective.communicator(), op, values, parts, axis);
}

std::shared_ptr<void> ReplicaContext::meet(
    std::type_index types, void* arguments,
    const std::function<std::shared_ptr<void>(const Strategy&, std::span<void* const>)>& merge,
    const CallPurpose& purpose) const {
  require_current("merge_call");
  MergeRequest request{"merge_call", types, arguments,
                       [&](std::span<void* const> by_replica) { return merge(strategy(), by_replica); },
                       purpose};
  return merge_point_.meet(local_replica_, request);
}

}  // namespace cohort
