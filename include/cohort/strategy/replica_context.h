// A ReplicaContext is what a replica's function knows about its place: which replica it
// is, and how to communicate with the others. `Strategy::run` hands one to the function;
// it is valid inside that call, on that thread.
//
// All replicas make the same calls in the same order. Where calls differ, or a replica does not arrive before
// the deadline, all get an error that names it. A replica that cannot make a collective, because its own
// arguments are wrong, ends the collectives of all in the same way, even if it handles its own error.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/device/device.h>
#include <cohort/strategy/strategy_extended.h>
#include <cohort/strategy/sum_or_mean.h>
#include <cohort/value/detail/variable_owner.h>
#include <cohort/value/leaves.h>
#include <cohort/value/per_replica.h>
#include <cohort/value/regroup.h>
#include <cohort/value/structure.h>
#include <cohort/value/structure_text.h>

namespace cohort {

class Strategy;

class ReplicaContext {
 public:
  ReplicaContext(StrategyExtended& extended, int local_replica, MergePoint& merge_point)
      : extended_(extended), local_replica_(local_replica), merge_point_(merge_point) {}

  ReplicaContext(const ReplicaContext&) = delete;
  ReplicaContext& operator=(const ReplicaContext&) = delete;

  /// That of code outside any scope: replica 0 of the default strategy.
  [[nodiscard]] static ReplicaContext& default_replica();

  [[nodiscard]] Strategy strategy() const;
  [[nodiscard]] int num_replicas_in_sync() const noexcept { return extended_.num_replicas_in_sync(); }
  [[nodiscard]] int replica_id_in_sync_group() const noexcept {
    return extended_.first_replica_id() + local_replica_;
  }
  [[nodiscard]] Device device() const { return extended_.device(local_replica_); }

  /// This replica's communicator with all replicas, for GradientBuckets and other needs beyond this class. A
  /// failed `run` may replace it: objects that were made with it must then be made again.
  [[nodiscard]] Communicator& communicator() const { return extended_.communicator(local_replica_); }

  /// The SUM or MEAN over all replicas of each leaf of a structure, which all replicas pass alike. The MEAN
  /// of integer tensors over several replicas is floating. Rows of IndexedSlices are concatenated, by
  /// replica; the MEAN divides their values.
  /// @throws WrongContext when this context is not the current one; InvalidArgument for another op,
  /// the MEAN of an integer number, or replicas that differ.
  template <class Structure>
  [[nodiscard]] Structure all_reduce(SumOrMean op, const Structure& value,
                                     const CommunicationOptions& options = {}) const;

  /// The same in place: the tensors become the results, large ones in less than half the time. Each replica
  /// passes tensors of its own, which must not overlap. Dtypes do not change.
  /// @throws as all_reduce; InvalidArgument for the MEAN of integers.
  void all_reduce_in_place(SumOrMean op, std::span<const Tensor> tensors,
                           const CommunicationOptions& options = {}) const;

  /// Concatenates the replicas' tensors along `axis`, for each tensor of a structure. Extents along `axis`
  /// may differ: with axis 0, [rows_r, columns] of replica r become [sum of all rows_r, columns].
  /// @throws WrongContext as all_reduce; InvalidArgument for scalars, an axis that does not exist, and when
  /// other extents differ; Unimplemented for IndexedSlices.
  template <class Structure>
  [[nodiscard]] Structure all_gather(const Structure& value, int axis,
                                     const CommunicationOptions& options = {}) const;

  /// An all_reduce of which each replica gets only its own part along `axis`, for each tensor of a structure.
  /// The parts follow one another in the order of the replicas. `part` gives this replica's shapes; its
  /// elements are not read. Parts of equal length along the first axis are used in place; others are copied,
  /// and padded to the longest. CrossDeviceOps chosen for the strategy are not used: they have no operation
  /// for it.
  ///
  /// It is all_gather transposed: where a loss has the gradient g by all_gather(x, axis), its gradient by x
  /// is reduce_scatter(kSum, g, x, axis). The gradient of all_reduce(op, x) is all_reduce(op, g).
  /// @throws InvalidArgument for a part that does not fit, and when the parts together are not as long as a
  /// replica's value; Unimplemented for IndexedSlices; all_reduce's errors.
  template <class Structure>
  [[nodiscard]] Structure reduce_scatter(SumOrMean op, const Structure& value, const Structure& part,
                                         int axis, const CommunicationOptions& options = {}) const;

  /// Runs `call`, this replica's part in a collective of all replicas. If it throws, the collectives of all
  /// replicas end with an error that names this one; otherwise they would take its next call for the one that
  /// they wait for. The collectives of this class use it. @throws what `call` throws.
  template <class Call>
  decltype(auto) or_abort_replicas(Call&& call) const;

  /// Pauses all local replicas and calls `merge_fn(strategy, PerReplica<Args>...)` once, in
  /// cross-replica context, on the thread that called `run`. Each replica gets its components of the
  /// distributed values in the result, and any other result as it is. Replica 0's function is the one
  /// that runs.
  /// @throws WrongContext when this context is not the current one. When the replicas merge different
  /// numbers of times, or `merge_fn` throws, all of them end, and `run` throws.
  template <class MergeFunction, class... Args>
  auto merge_call(MergeFunction&& merge_fn, const Args&... args) const;

  /// The same for functions that are made of it: replicas must also agree on the `purpose`, and messages
  /// speak of it instead of merge_call.
  template <class MergeFunction, class... Args>
  auto merge_call_for(const CallPurpose& purpose, MergeFunction&& merge_fn, const Args&... args) const;

 private:
  friend class Strategy;
  void require_current(const char* what) const;

  /// A structure of leaves, as the collectives below see it.
  struct Leaves {
    LeafList list;
    std::uint64_t fingerprint;
    StructureText text;
  };

  template <class MergeFunction, class... Args>
  auto merge_call_checked(const CallPurpose& purpose, MergeFunction& merge_fn, const Args&... args) const;

  /// merge_call without types: `merge` gets the `arguments` of all replicas, which must be of the same types.
  [[nodiscard]] std::shared_ptr<void> meet(
      std::type_index types, void* arguments,
      const std::function<std::shared_ptr<void>(const Strategy&, std::span<void* const>)>& merge,
      const CallPurpose& purpose) const;

  [[nodiscard]] LeafList reduce_leaves(ReduceOp op, const Leaves& leaves,
                                       const CommunicationOptions& options) const;
  [[nodiscard]] LeafList gather_leaves(const Leaves& leaves, int axis,
                                       const CommunicationOptions& options) const;
  [[nodiscard]] LeafList scatter_leaves(ReduceOp op, const Leaves& leaves, std::span<const Shape> parts,
                                        int axis, const CommunicationOptions& options) const;

  StrategyExtended& extended_;
  int local_replica_;
  MergePoint& merge_point_;
};

template <class Call>
decltype(auto) ReplicaContext::or_abort_replicas(Call&& call) const {
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception&) {  // not what unwinds a replica whose merge will never happen
    extended_.abort_replicas(local_replica_, std::current_exception());
    throw;
  }
}

template <class Structure>
Structure ReplicaContext::all_reduce(SumOrMean op, const Structure& value,
                                     const CommunicationOptions& options) const {
  require_current("all_reduce");
  return or_abort_replicas([&] {
    const Leaves leaves{detail::leaves_for(op, value), structure_fingerprint(value), StructureText(value)};
    return from_leaves(value, reduce_leaves(op, leaves, options));
  });
}

template <class Structure>
Structure ReplicaContext::all_gather(const Structure& value, int axis,
                                     const CommunicationOptions& options) const {
  require_current("all_gather");
  return or_abort_replicas([&] {
    Leaves leaves{{}, structure_fingerprint(value), StructureText(value)};
    for_each_leaf(
        [&]<class L>(const L& leaf) {
          constexpr bool kNumber = Element<L>;
          static_assert(!kNumber, "all_gather concatenates tensors: wrap numbers in tensors of one axis");
          if constexpr (!kNumber) leaves.list.emplace_back(leaf);
        },
        value);
    return from_leaves(value, gather_leaves(leaves, axis, options));
  });
}

template <class Structure>
Structure ReplicaContext::reduce_scatter(SumOrMean op, const Structure& value, const Structure& part,
                                         int axis, const CommunicationOptions& options) const {
  require_current("reduce_scatter");
  return or_abort_replicas([&] {
    Leaves leaves{{}, structure_fingerprint(value), StructureText(value)};
    std::vector<Shape> parts;
    for_each_leaf(
        [&]<class L>(const L& leaf, const L& own) {
          constexpr bool kNumber = Element<L>;
          static_assert(!kNumber, "reduce_scatter takes tensors apart: numbers go by all_reduce");
          if constexpr (!kNumber) {
            leaves.list.emplace_back(leaf);
            parts.push_back(values_of(own).shape());
          }
        },
        value, part);
    return from_leaves(value, scatter_leaves(op, leaves, parts, axis, options));
  });
}

template <class MergeFunction, class... Args>
auto ReplicaContext::merge_call(MergeFunction&& merge_fn, const Args&... args) const {
  const PurposeOf purpose(fingerprint_of("merge_call"), Caller::kReplica, device(),
                          [] { return PurposeWords{"calls merge_call"}; });
  return merge_call_for(purpose, std::forward<MergeFunction>(merge_fn), args...);
}

template <class MergeFunction, class... Args>
auto ReplicaContext::merge_call_for(const CallPurpose& purpose, MergeFunction&& merge_fn,
                                    const Args&... args) const {
  constexpr bool kTakesArguments =
      std::is_invocable_v<MergeFunction&, const Strategy&, const PerReplica<Args>&...>;
  static_assert(
      kTakesArguments,
      "the function of merge_call() takes (const Strategy&, const PerReplica<T>&...): the arguments "
      "of merge_call() in their order, a T as the PerReplica<T> of all replicas");
  if constexpr (kTakesArguments) return merge_call_checked(purpose, merge_fn, args...);
}

template <class MergeFunction, class... Args>
auto ReplicaContext::merge_call_checked(const CallPurpose& purpose, MergeFunction& merge_fn,
                                        const Args&... args) const {
  using Arguments = std::tuple<const Args&...>;
  using Result =
      std::remove_cvref_t<std::invoke_result_t<MergeFunction&, const Strategy&, const PerReplica<Args>&...>>;
  Arguments arguments(args...);

  const auto merge = [&](const Strategy& strategy,
                         std::span<void* const> by_replica) -> std::shared_ptr<void> {
    const auto regroup = [&]<std::size_t kIndex>(std::integral_constant<std::size_t, kIndex>) {
      std::vector<std::tuple_element_t<kIndex, std::tuple<Args...>>> components;
      components.reserve(by_replica.size());
      for (void* const of_replica : by_replica)
        components.push_back(std::get<kIndex>(*static_cast<Arguments*>(of_replica)));
      return PerReplica(std::move(components));
    };
    return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>)->std::shared_ptr<void> {
      if constexpr (std::is_void_v<Result>) {
        merge_fn(strategy, regroup(std::integral_constant<std::size_t, kIndex>{})...);
        return nullptr;
      } else {
        return std::make_shared<Result>(
            merge_fn(strategy, regroup(std::integral_constant<std::size_t, kIndex>{})...));
      }
    }
    (std::index_sequence_for<Args...>{});
  };
  const std::shared_ptr<void> result = meet(typeid(Result(*)(Arguments)), &arguments, merge, purpose);
  if constexpr (!std::is_void_v<Result>) {
    return select_replica(static_cast<std::size_t>(local_replica_),
                          *static_cast<const Result*>(result.get()));
  }
}

}  // namespace cohort
