// A ReplicaContext is what a replica's function knows about its place: which replica it
// is, and how to communicate with the others. `Strategy::run` hands one to the function;
// it is valid inside that call, on that thread.
//
// All replicas make the same calls in the same order.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <cohort/collective/reduce_op.h>
#include <cohort/device/device.h>
#include <cohort/strategy/strategy_extended.h>
#include <cohort/value/merge_point.h>
#include <cohort/value/per_replica.h>
#include <cohort/value/structure.h>

namespace cohort {

class Strategy;

class ReplicaContext {
 public:
  ReplicaContext(StrategyExtended& extended, int local_replica, MergePoint& merge_point)
      : extended_(extended), local_replica_(local_replica), merge_point_(merge_point) {}

  ReplicaContext(const ReplicaContext&) = delete;
  ReplicaContext& operator=(const ReplicaContext&) = delete;

  [[nodiscard]] Strategy strategy() const;
  [[nodiscard]] int num_replicas_in_sync() const noexcept { return extended_.num_replicas_in_sync(); }
  [[nodiscard]] int replica_id_in_sync_group() const noexcept {
    return extended_.first_replica_id() + local_replica_;
  }
  [[nodiscard]] Device device() const { return extended_.device(local_replica_); }

  /// This replica's seat among all replicas, for GradientBuckets and what else goes beyond this class.
  /// After a failed `run` it may be gone: what was made with it is then made anew.
  [[nodiscard]] Communicator& communicator() const { return extended_.communicator(local_replica_); }

  /// The SUM or MEAN over all replicas of each leaf of a structure, which all replicas pass alike.
  /// The MEAN of integer tensors over several replicas is floating.
  /// @throws WrongContext when this context is not the current one; InvalidArgument for another op,
  /// the MEAN of an integer number, or replicas that differ.
  template <class Structure>
  [[nodiscard]] Structure all_reduce(ReduceOp op, const Structure& value) const;

  /// The same for tensors, which become the results: large ones in less than half the time. Each
  /// replica passes its own, and they must not overlap. Dtypes stay, so integers have no MEAN.
  void all_reduce_in_place(ReduceOp op, std::span<const Tensor> tensors) const;

  /// The replicas' tensors one after the other along `axis`, for each tensor of a structure; extents
  /// along `axis` may differ. @throws InvalidArgument when other extents differ.
  template <class Structure>
  [[nodiscard]] Structure all_gather(const Structure& value, int axis) const;

  /// Pauses all local replicas and calls `merge_fn(strategy, PerReplica<Args>...)` once, in
  /// cross-replica context, on the thread that called `run`. Each replica gets its components of the
  /// distributed values in the result, and any other result as it is. Replica 0's function is the one
  /// that runs.
  /// @throws WrongContext when this context is not the current one, or when the replicas merge
  /// different numbers of times.
  template <class MergeFunction, class... Args>
  auto merge_call(MergeFunction&& merge_fn, const Args&... args) const;

 private:
  friend class Strategy;
  void require_current(const char* what) const;
  [[nodiscard]] Tensor gather_tensor(const Tensor& value, int axis) const;

  StrategyExtended& extended_;
  int local_replica_;
  MergePoint& merge_point_;
};

namespace detail {

template <class Leaf>
[[nodiscard]] Tensor leaf_to_tensor(const Leaf& leaf, ReduceOp op) {
  if constexpr (std::is_same_v<Leaf, Tensor>) {
    return leaf;
  } else {
    if (op == ReduceOp::kMean && !is_floating(kDTypeOf<Leaf>)) {
      throw InvalidArgument(
          "the mean of numbers of type {} is a fraction, which that type cannot hold; pass double",
          to_string(kDTypeOf<Leaf>));
    }
    return Tensor::scalar(leaf);
  }
}

template <class Structure>
[[nodiscard]] std::vector<Tensor> to_tensors(const Structure& structure, ReduceOp op) {
  std::vector<Tensor> tensors;
  for_each_leaf([&](const auto& leaf) { tensors.push_back(leaf_to_tensor(leaf, op)); }, structure);
  return tensors;
}

/// `like` with its leaves replaced by `tensors`, in order.
template <class Structure>
[[nodiscard]] Structure from_tensors(const Structure& like, std::span<const Tensor> tensors) {
  auto next = tensors.begin();
  return map_structure(
      [&]<class L>(const L&) -> L {
        const Tensor& tensor = *next++;
        if constexpr (std::is_same_v<L, Tensor>)
          return tensor;
        else
          return tensor.item<L>();
      },
      like);
}

}  // namespace detail

template <class Structure>
Structure ReplicaContext::all_reduce(ReduceOp op, const Structure& value) const {
  require_current("all_reduce");
  return detail::from_tensors(value, extended_.all_reduce(local_replica_, op, detail::to_tensors(value, op),
                                                          structure_fingerprint(value)));
}

template <class Structure>
Structure ReplicaContext::all_gather(const Structure& value, int axis) const {
  require_current("all_gather");
  return map_structure(
      [&]<class L>(const L& leaf) {
        static_assert(std::is_same_v<L, Tensor>,
                      "all_gather concatenates tensors: wrap numbers in tensors of one axis");
        return gather_tensor(leaf, axis);
      },
      value);
}

}  // namespace cohort
