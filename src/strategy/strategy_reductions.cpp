// The reductions of StrategyExtended: which values are contributions, and what reduces them.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/fingerprint.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/strategy/strategy_extended.h>

#include "collective_scopes.h"
#include "leaf_reduction.h"

namespace cohort {
namespace {

/// Leaf `leaf` of every component; for a plain leaf, its only value.
Components components_of_leaf(const StructureReduction& value, std::size_t leaf) {
  if (value.contributions[leaf] == Contributions::kPlain) return {value.components.front()[leaf]};
  Components components;
  components.reserve(value.components.size());
  for (const LeafList& leaves : value.components) components.push_back(leaves[leaf]);
  return components;
}

LeafList copies_of(const LeafList& leaves) {
  LeafList copies;
  copies.reserve(leaves.size());
  for (const TensorOrSlices& leaf : leaves) copies.push_back(copy_to(leaf, values_of(leaf).device()));
  return copies;
}

/// Each leaf's components concatenated, dense.
std::vector<Tensor> concatenated_leaves(const StructureReduction& value, int axis) {
  std::vector<Tensor> results;
  for (std::size_t leaf = 0; leaf < value.components.front().size(); ++leaf) {
    std::vector<Tensor> parts;
    for (const TensorOrSlices& part : components_of_leaf(value, leaf)) {
      const auto* slices = std::get_if<IndexedSlices>(&part);
      parts.push_back(slices != nullptr ? densify(*slices) : std::get<Tensor>(part));
    }
    results.push_back(concatenate(parts, axis));
  }
  return results;
}

constexpr std::uint64_t kReduce = fingerprint_of("reduce");
constexpr std::uint64_t kReduceAlong = fingerprint_of("reduce along axes");
constexpr std::uint64_t kGather = fingerprint_of("gather");
constexpr std::uint64_t kAllReduceLeaves = fingerprint_of("all_reduce of leaves");

PurposeWords reduction_words(ReduceOp op, std::span<const StructureReduction> values) {
  std::string texts;
  for (const StructureReduction& value : values) {
    if (!texts.empty()) texts += ", ";
    texts += value.text.get();
  }
  if (values.size() == 1) return {fmt::format("reduces ({}) {}", to_string(op), texts)};
  return {fmt::format("reduces ({}) {} values: {}", to_string(op), values.size(), texts)};
}

}  // namespace

Contributions detail::contributions_of(const Variable& variable) {
  const VariableOwner* owner = variable.state()->owner();
  if (owner == nullptr || owner->variable_placement() != VariablePlacement::kMirrored)
    return Contributions::kPlain;
  return variable.synchronization() == VariableSynchronization::kOnRead ? Contributions::kPerReplica
                                                                        : Contributions::kMirrored;
}

std::string StrategyExtended::replica_name(std::size_t local_replica) const {
  const int replica = first_replica_id() + static_cast<int>(local_replica);
  return describe(replica, communicators_.front()->members()[static_cast<std::size_t>(replica)],
                  {.caller = Caller::kReplica, .device = to_string(layout_.devices[local_replica])});
}

/// The components must be those of this worker's replicas.
void StrategyExtended::require_own(const StructureReduction& value) const {
  const std::size_t components = value.components.size();
  if (components == 0) throw InvalidArgument("a value without components has nothing to reduce or gather");
  const bool of_replicas =
      std::ranges::find(value.contributions, Contributions::kPerReplica) != value.contributions.end();
  if (of_replicas && static_cast<int>(components) != local_replicas()) {
    throw InvalidArgument(
        "a PerReplica value of {} components was given to {}, which has {} local replicas; "
        "it belongs to another strategy",
        components, layout_.name, local_replicas());
  }
}

/// The components must be structures of one form.
void StrategyExtended::require_one_form(const StructureReduction& value) const {
  for (std::size_t component = 1; component < value.components.size(); ++component) {
    if (value.fingerprints[component] == value.fingerprints[0]) continue;
    throw InvalidArgument("{} has a structure with other keys, lengths or optionals than {}",
                          replica_name(component), replica_name(0));
  }
}

void StrategyExtended::require_alike_leaf(const StructureReduction& value, std::size_t leaf) const {
  require_alike(components_of_leaf(value, leaf), [this](std::size_t i) { return replica_name(i); });
}

/// Whether such a leaf goes to the cross-device operations; otherwise the leaf itself is the result.
bool StrategyExtended::contributes(ReduceOp op, Contributions leaf) const {
  const bool plain = leaf == Contributions::kPlain;
  const bool mirrored = leaf == Contributions::kMirrored;
  if (!plain && !mirrored) return true;
  if (plain && (num_replicas_in_sync() == 1 || workers() > 1)) return true;
  if (mirrored && variable_placement() != VariablePlacement::kMirrored) return true;
  if (op == ReduceOp::kMean) return false;
  throw InvalidArgument(
      "sum of a value that is not PerReplica: {} has {} replicas, and the value does not say what "
      "each of them contributes; return it from run()",
      layout_.name, num_replicas_in_sync());
}

/// Whether no leaf of a value is reduced; then its components are the result, where they are.
bool StrategyExtended::is_kept(ReduceOp op, const StructureReduction& value) const {
  const auto stays = [&](Contributions leaf) { return !contributes(op, leaf); };
  return !value.contributions.empty() && std::ranges::all_of(value.contributions, stays);
}

void StrategyExtended::require_reducible(ReduceOp op, const StructureReduction& value) const {
  require_own(value);
  require_one_form(value);
  for (std::size_t leaf = 0; leaf < value.contributions.size(); ++leaf) {
    if (!contributes(op, value.contributions[leaf])) continue;
    require_alike_leaf(value, leaf);
    // The operations check this themselves, which is early enough if no other worker waits.
    if (workers() == 1) continue;
    for (const LeafList& leaves : value.components) require_defined(op, leaves[leaf]);
  }
}

std::vector<std::vector<LeafList>> StrategyExtended::reduce(ReduceOp op,
                                                            std::span<const StructureReduction> values,
                                                            const CommunicationOptions& options) {
  const std::uint64_t fingerprint = or_abort_workers([&] {
    Fingerprint structures;
    structures.add(kReduce).add(static_cast<std::uint64_t>(op)).add(values.size());
    for (const StructureReduction& value : values) {
      require_reducible(op, value);
      const bool kept = is_kept(op, value);
      structures.add(kept ? 1 : 0);
      if (kept) continue;
      structures.add(value.fingerprints.front()).add(converted_dtypes(op, value.components.front()));
    }
    return structures.value();
  });
  PurposeOf purpose(fingerprint, Caller::kWorker, [&] { return reduction_words(op, values); });
  return reduce_for(purpose, op, values, options);
}

/// Of values that have been found to be reducible.
std::vector<std::vector<LeafList>> StrategyExtended::reduce_for(CallPurpose& purpose, ReduceOp op,
                                                                std::span<const StructureReduction> values,
                                                                const CommunicationOptions& options) {
  or_abort_workers([&] { options.validate(); });
  std::vector<ReduceRequest> requests;
  for (const StructureReduction& value : values) {
    for (std::size_t leaf = 0; leaf < value.contributions.size(); ++leaf)
      if (contributes(op, value.contributions[leaf]))
        requests.push_back({components_of_leaf(value, leaf), value.destinations});
  }

  // What each worker keeps as it is needs no other worker; but a value without leaves takes part as well.
  std::optional<WorkersCollective> collective;
  const auto stays = [&](const StructureReduction& value) { return is_kept(op, value); };
  const bool communicates = workers() > 1 && (values.empty() || !std::ranges::all_of(values, stays));
  if (communicates) collective.emplace(*this, purpose, options.timeout_seconds);
  if (communicates && requests.empty()) workers_communicator().barrier();
  const std::vector<Components> leaves = cross_device_ops_->batch_reduce(op, requests, options);
  if (collective) collective->end();

  std::vector<std::vector<LeafList>> results;
  auto next = leaves.begin();
  for (const StructureReduction& value : values) {
    std::vector<LeafList>& result = results.emplace_back();
    if (is_kept(op, value)) {
      for (const LeafList& component : value.components) result.push_back(copies_of(component));
      continue;
    }
    result.resize(value.destinations.devices().size());
    const auto add = [&result](const Components& by_destination) {
      for (std::size_t i = 0; i < result.size(); ++i) result[i].push_back(by_destination[i]);
    };
    for (std::size_t leaf = 0; leaf < value.contributions.size(); ++leaf) {
      if (contributes(op, value.contributions[leaf]))
        add(*next++);
      else
        add(cross_device_ops_->broadcast(value.components.front()[leaf], value.destinations));
    }
  }
  return results;
}

Mirrored<Tensor> StrategyExtended::broadcast_to(const Tensor& value, const Destinations& destinations) {
  std::vector<Tensor> copies;
  for (const TensorOrSlices& copy : broadcast_leaf(value, destinations))
    copies.push_back(std::get<Tensor>(copy));
  return Mirrored<Tensor>(std::move(copies));
}

Mirrored<IndexedSlices> StrategyExtended::broadcast_to(const IndexedSlices& value,
                                                       const Destinations& destinations) {
  std::vector<IndexedSlices> copies;
  for (const TensorOrSlices& copy : broadcast_leaf(value, destinations))
    copies.push_back(std::get<IndexedSlices>(copy));
  return Mirrored<IndexedSlices>(std::move(copies));
}

void StrategyExtended::require_broadcast() const {
  require_cross_replica("broadcast_to");
  if (is_default()) {
    throw Unimplemented("broadcast_to needs a strategy, and none was chosen; enter the scope of one first");
  }
}

Components StrategyExtended::broadcast_leaf(const TensorOrSlices& value, const Destinations& destinations) {
  require_broadcast();
  return cross_device_ops_->broadcast(value, destinations);
}

/// Each replica's sum, and for a MEAN the number of elements in it.
StructureReduction StrategyExtended::summed_along(ReduceOp op, std::span<const Tensor> values,
                                                  std::span<const int> axes) const {
  if (static_cast<int>(values.size()) != local_replicas()) {
    throw InvalidArgument("reduce: {} values for {} local replicas", values.size(), local_replicas());
  }
  const DType dtype = values.front().dtype();
  require_legal(ReduceOp::kSum, dtype);
  const Tensor& first = values.front();
  StructureReduction partial{
      std::vector(op == ReduceOp::kSum ? 1U : 2U, Contributions::kPerReplica), {}, {}, Device()};
  Shape sum_shape;
  for (std::size_t replica = 0; replica < values.size(); ++replica) {
    const Tensor& value = values[replica];
    // A mean is taken in float64 from the start: sums of large integers would wrap.
    const Tensor sum = sum_along(op == ReduceOp::kMean ? value.cast(mean_dtype(value.dtype())) : value, axes);
    if (replica == 0) sum_shape = sum.shape();
    if (value.dtype() != dtype || sum.shape() != sum_shape) {
      throw InvalidArgument("reduce: replica {} has {}, replica {} has {}; only the reduced axes may differ",
                            first_replica_id() + static_cast<int>(replica), describe(value),
                            first_replica_id(), describe(first));
    }
    partial.fingerprints.push_back(static_cast<std::uint64_t>(dtype));
    if (op == ReduceOp::kSum) {
      partial.components.push_back({sum});
      continue;
    }
    // The number of summed elements travels beside the sums, so that one collective does both.
    double count = 1;
    for (const int axis : axes) count *= static_cast<double>(value.shape()[axis]);
    partial.components.push_back({sum.cast(DType::kFloat64), Tensor::scalar(count)});
  }
  return partial;
}

Tensor StrategyExtended::reduce_along(ReduceOp op, std::span<const Tensor> values, std::span<const int> axes,
                                      std::uint64_t variable) {
  const StructureReduction partial = or_abort_workers([&] { return summed_along(op, values, axes); });
  const DType dtype = values.front().dtype();
  Fingerprint fingerprint;
  fingerprint.add(kReduceAlong).add(static_cast<std::uint64_t>(op)).add(static_cast<std::uint64_t>(dtype));
  fingerprint.add(variable);
  for (const int axis : axes)
    fingerprint.add(static_cast<std::uint64_t>(values.front().shape().normalize_axis(axis)));
  PurposeOf purpose(fingerprint.value(), Caller::kWorker, [&] {
    return PurposeWords{fmt::format("reduces ({}) {} along {} {}", to_string(op), describe(values.front()),
                                    axes.size() == 1 ? "axis" : "axes", fmt::join(axes, ", ")),
                        variable == 0 ? "" : fmt::format("variable number {}", variable)};
  });
  or_abort_workers([&] { require_reducible(ReduceOp::kSum, partial); });
  const LeafList totals = reduce_for(purpose, ReduceOp::kSum, {&partial, 1}, {}).front().front();
  const Tensor& sum = std::get<Tensor>(totals.front());
  if (op == ReduceOp::kSum) return sum.cast(dtype);
  const auto count = std::get<Tensor>(totals.back()).item<double>();
  for (double& value : sum.span<double>()) value /= count;
  return sum.cast(mean_dtype(dtype));
}

std::vector<Tensor> StrategyExtended::gather(const StructureReduction& value, int axis) {
  std::vector<Tensor> results = or_abort_workers([&] {
    require_own(value);
    require_one_form(value);
    return concatenated_leaves(value, axis);
  });
  if (workers() == 1) return results;
  Fingerprint fingerprint;
  fingerprint.add(kGather).add(value.fingerprints.front());
  for (const Tensor& result : results)
    fingerprint.add(static_cast<std::uint64_t>(result.shape().normalize_axis(axis)));
  PurposeOf purpose(fingerprint.value(), Caller::kWorker, [&] {
    return PurposeWords{fmt::format("gathers {} along axis {}", value.text.get(), axis)};
  });
  WorkersCollective collective(*this, purpose);
  Communicator& communicator = workers_communicator();
  if (results.empty()) communicator.barrier();  // a value without leaves takes part as well
  for (Tensor& result : results) result = gathered_along(communicator, result, axis, purpose);
  collective.end();
  return results;
}

LeafList StrategyExtended::all_reduce(int local_replica, ReduceOp op, std::span<const TensorOrSlices> values,
                                      std::uint64_t structure, const CommunicationOptions& options) {
  const std::uint64_t fingerprint = Fingerprint()
                                        .add(kAllReduceLeaves)
                                        .add(static_cast<std::uint64_t>(op))
                                        .add(structure)
                                        .add(converted_dtypes(op, values))
                                        .value();
  PurposeOf purpose(fingerprint, Caller::kReplica, device(local_replica), [&] {
    const LeafList leaves(values.begin(), values.end());
    return PurposeWords{fmt::format("all_reduces ({}) {}", to_string(op), StructureText(leaves).get())};
  });
  return all_reduce_for(purpose, local_replica, op, values, options);
}

LeafList StrategyExtended::all_reduce_for(CallPurpose& purpose, int local_replica, ReduceOp op,
                                          std::span<const TensorOrSlices> values,
                                          const CommunicationOptions& options) {
  if (num_replicas_in_sync() == 1) {
    options.validate();
    return copies_of({values.begin(), values.end()});
  }
  LeafList leaves;
  leaves.reserve(values.size());
  for (const TensorOrSlices& value : values) leaves.push_back(prepared(op, value));
  ReplicaCollective collective(*this, local_replica, options, purpose);
  if (values.empty()) collective.communicator().barrier();  // an empty structure takes part as well
  return reducer(local_replica).all_reduced(collective.communicator(), leaves, op);
}

}  // namespace cohort
