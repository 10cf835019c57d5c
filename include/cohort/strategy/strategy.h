// A Strategy decides on which devices replicas run, where variables live and how values are reduced; the
// program says what one replica does. Concrete strategies differ only in how they are made (see
// mirrored_strategy.h and its neighbours). A Strategy is a handle: copies denote the same strategy.
//
//     auto scope = strategy.scope();
//     auto losses = strategy.run([&](ReplicaContext& replica, const Batch& mine) { ... }, batch);
//     float loss = strategy.reduce(ReduceOp::kSum, losses);
//
// One thread at a time calls these functions. With several workers, all of them make the same calls in the
// same order; where calls differ or a worker is missing, all get an error that names it, and the strategy can
// no longer be used.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/strategy/replica_context.h>
#include <cohort/strategy/strategy_extended.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/mirrored.h>
#include <cohort/value/per_replica.h>
#include <cohort/value/regroup.h>
#include <cohort/value/structure.h>
#include <cohort/value/value_context.h>

namespace cohort {

/// While it lives, the strategy is the current one of this thread, in cross-replica context. It stays where
/// it was made, as all scopes do; one that is opened later, or not at all, is made in its place:
///
///     std::optional<StrategyScope> scope;
///     if (distributed) scope.emplace(strategy);
class [[nodiscard]] StrategyScope {
 public:
  /// What `strategy.scope()` does. @throws as that.
  explicit StrategyScope(const Strategy& strategy);
  explicit StrategyScope(StrategyExtended& extended);

  /// Whether no other scope was opened inside of this one.
  [[nodiscard]] bool is_innermost() const noexcept { return scope_ && scope_->is_innermost(); }

 private:
  std::shared_ptr<StrategyExtended> extended_;  // the strategy lives as long as it is the current one
  std::optional<ContextScope> scope_;
};

/// One axis or several, each named once; negative ones count from the end.
class Axes {
 public:
  Axes(int axis) : axes_{axis} {}  // NOLINT(google-explicit-constructor): reads as reduce(op, value, 0)
  Axes(std::initializer_list<int> axes) : axes_(axes) {}
  Axes(std::span<const int> axes) : axes_(axes.begin(), axes.end()) {}  // NOLINT(google-explicit-constructor)
  Axes(std::vector<int> axes) : axes_(std::move(axes)) {}               // NOLINT(google-explicit-constructor)
  [[nodiscard]] std::span<const int> values() const& noexcept { return axes_; }
  [[nodiscard]] std::vector<int> values() && { return std::move(axes_); }

 private:
  std::vector<int> axes_;
};

// The input layer, above this one, defines them.
struct DistributeOptions;
struct InputOptions;

class Strategy {
 public:
  explicit Strategy(std::shared_ptr<StrategyExtended> extended) : extended_(std::move(extended)) {}

  [[nodiscard]] StrategyExtended& extended() const noexcept { return *extended_; }
  [[nodiscard]] int num_replicas_in_sync() const noexcept { return extended_->num_replicas_in_sync(); }

  /// Enters this strategy; re-entrant. @throws WrongContext when another strategy is active, or
  /// inside a replica.
  StrategyScope scope() const { return StrategyScope(*extended_); }

  /// Calls `function` once per local replica, concurrently. It may take a ReplicaContext& first; distributed
  /// arguments arrive as the replica's own component, also those inside of structures (see select_replica),
  /// all others as they are. Results come back as PerReplica; `regroup` turns a PerReplica of structures into
  /// a structure of PerReplica values. When replicas throw, all of them end, and the exception of the lowest
  /// one is thrown.
  /// @throws WrongContext inside a replica, or when another strategy is active.
  template <class Function, class... Args>
  auto run(Function&& function, const Args&... args) const;

  /// SUM or MEAN over all replicas of each leaf of a structure, on the current device (see DeviceScope); the
  /// same result on every worker. A value that is not distributed, alone or in a structure, counts as this
  /// worker's contribution (with one worker: its MEAN is itself, its SUM an error). The MEAN of integer
  /// tensors over several replicas is floating. Rows of IndexedSlices are concatenated.
  /// @throws WrongContext inside a replica; InvalidArgument for another op or replicas that differ.
  template <class Value>
  [[nodiscard]] auto reduce(SumOrMean op, const Value& value) const;

  /// Also reduces along `axes` inside each replica, and leaves them out of the shape: with axis 0, [rows,
  /// columns] of each replica become [columns]. MEAN weighs elements, not replicas: uneven batches, also
  /// empty ones, count by their sizes. A plain tensor counts as the value of each replica.
  /// @throws as above; InvalidArgument for an axis that the tensors do not have.
  template <class Value>
  [[nodiscard]] Tensor reduce(SumOrMean op, const Value& value, const Axes& axes) const;

  /// Concatenates the replicas' tensors along `axis`, for each tensor of a structure, on every worker: with
  /// axis 0, [rows_r, columns] of replica r become [sum of all rows_r, columns]. A value that is not
  /// distributed is this worker's contribution. IndexedSlices become dense first.
  /// @throws WrongContext inside a replica, pointing to all_gather; InvalidArgument for scalars, and for
  /// tensors whose other extents differ.
  template <class Value>
  [[nodiscard]] auto gather(const Value& value, int axis) const;

  /// What each of this worker's replicas sees of a distributed value or a structure; the components of a
  /// variable. For anything else, a list of that value alone.
  template <class Value>
  [[nodiscard]] auto local_results(const Value& value) const;

  /// `function(ValueContext)` for each of this worker's replicas, on the calling thread, as PerReplica.
  /// @throws WrongContext inside a replica, or when another strategy is active.
  template <class Function>
  [[nodiscard]] auto distribute_values_from_function(Function&& function) const;

  /// Distributes a dataset among the replicas: each global batch is split among all of them. Defined by the
  /// input layer, and found through its argument (`#include <cohort/input/distribute.h>`).
  template <class Dataset>
  [[nodiscard]] auto distribute_dataset(const Dataset& dataset) const {
    constexpr bool kCanDistribute = requires { distribute(dataset, *this); };
    static_assert(kCanDistribute,
                  "distribute_dataset() takes a Dataset, and needs #include <cohort/input/distribute.h>");
    if constexpr (kCanDistribute) return distribute(dataset, *this);
  }
  template <class Dataset>
  [[nodiscard]] auto distribute_dataset(const Dataset& dataset, const DistributeOptions& options) const {
    constexpr bool kCanDistribute = requires { distribute(dataset, *this, options); };
    static_assert(kCanDistribute,
                  "distribute_dataset() takes a Dataset, and needs #include <cohort/input/distribute.h>");
    if constexpr (kCanDistribute) return distribute(dataset, *this, options);
  }

  /// Distributes the dataset that `function(InputContext)` returns. Its elements are batches for single
  /// replicas of this worker. Defined by the input layer, too.
  template <class Function>
  [[nodiscard]] auto distribute_datasets_from_function(Function&& function) const {
    return distribute_from_function(function, *this);
  }
  template <class Function>
  [[nodiscard]] auto distribute_datasets_from_function(Function&& function,
                                                       const InputOptions& options) const {
    return distribute_from_function(function, *this, options);
  }

  friend bool operator==(const Strategy& a, const Strategy& b) { return a.extended_ == b.extended_; }

 private:
  template <class Function, class... Args>
  auto run_checked(Function& function, const Args&... args) const;

  std::shared_ptr<StrategyExtended> extended_;
};

inline StrategyScope::StrategyScope(const Strategy& strategy) : StrategyScope(strategy.extended()) {}

/// The current strategy of this thread; outside any scope, the default strategy.
[[nodiscard]] Strategy get_strategy();

/// Makes `strategy` the current one of this thread until the next call, as if everything that follows were in
/// its `scope()`; nothing, or the default strategy, means none. The thread keeps the strategy alive: if that
/// uses a Session, call set_strategy({}) before the Session ends.
/// @throws WrongContext inside a scope: a strategy's, a DeviceScope, a VariableCreatorScope, or a replica.
void set_strategy(const std::optional<Strategy>& strategy);

/// True when the current strategy is not the default one.
[[nodiscard]] bool has_strategy();

/// The replica that this thread runs; null in cross-replica context; replica 0 of the default
/// strategy outside any scope.
[[nodiscard]] ReplicaContext* get_replica_context();

[[nodiscard]] bool in_cross_replica_context();

/// Inside the function given to `update`: the number of the local component; nothing elsewhere.
[[nodiscard]] std::optional<int> get_update_replica_id();

// ---- implementation of the templates ----

namespace detail {

/// What arrives in a replica or an update of an argument of type Arg.
template <class Arg>
using Component = typename Selection<std::remove_cvref_t<Arg>>::Component;

/// By reference where nothing has to be taken apart.
template <class Arg>
[[nodiscard]] decltype(auto) component_of(const Arg& arg, int local_replica) {
  if constexpr (kHoldsDistributed<Arg>)
    return Selection<Arg>::select(static_cast<std::size_t>(local_replica), arg);
  else
    return (arg);
}

template <class Function, class... Args>
decltype(auto) call_replica(Function& function, ReplicaContext& replica, const Args&... args) {
  if constexpr (std::is_invocable_v<Function&, ReplicaContext&, const Args&...>)
    return function(replica, args...);
  else
    return function(args...);
}

/// Whether `run` can call the function: distributed arguments arrive as their components.
template <class Function, class... Args>
[[nodiscard]] constexpr bool takes_arguments() {
  if constexpr (std::is_invocable_v<Function&, ReplicaContext&, const Component<Args>&...>)
    return true;
  else
    return std::is_invocable_v<Function&, const Component<Args>&...>;
}

}  // namespace detail

template <class Function, class... Args>
auto Strategy::run(Function&& function, const Args&... args) const {
  constexpr bool kTakesArguments = detail::takes_arguments<Function, Args...>();
  static_assert(
      kTakesArguments,
      "the function of run() takes (ReplicaContext&, arguments...) or (arguments...): the arguments "
      "of run() in their order, by value or const reference, and a PerReplica<T> as T");
  if constexpr (kTakesArguments) return run_checked(function, args...);
}

template <class Function, class... Args>
auto Strategy::run_checked(Function& function, const Args&... args) const {
  (detail::require_components(args, extended_->local_replicas()), ...);
  using Result = std::remove_cvref_t<decltype(detail::call_replica(function, std::declval<ReplicaContext&>(),
                                                                   detail::component_of(args, 0)...))>;
  const auto call = [&](ReplicaContext& replica) -> decltype(auto) {
    return detail::call_replica(function, replica, detail::component_of(args, replica.local_replica_)...);
  };
  if constexpr (std::is_void_v<Result>) {
    extended_->call_for_each_replica([&](ReplicaContext& replica) { call(replica); });
  } else {
    std::vector<std::optional<Result>> results(static_cast<std::size_t>(extended_->local_replicas()));
    extended_->call_for_each_replica([&](ReplicaContext& replica) {
      results[static_cast<std::size_t>(replica.local_replica_)].emplace(call(replica));
    });
    std::vector<Result> components;
    components.reserve(results.size());
    for (auto& result : results) components.push_back(std::move(*result));
    return PerReplica<Result>(std::move(components), num_replicas_in_sync());
  }
}

template <class Value>
auto Strategy::reduce(SumOrMean op, const Value& value) const {
  extended_->require_cross_replica("reduce");
  return extended_->reduce_to(op, value, current_device().value_or(Device()))[0];
}

template <class Value>
Tensor Strategy::reduce(SumOrMean op, const Value& value, const Axes& axes) const {
  constexpr bool kOneTensor = std::is_same_v<detail::ReducedOf<Value>, Tensor>;
  static_assert(kOneTensor, "axes belong to one tensor: reduce the tensors of a structure one by one");
  extended_->require_cross_replica("reduce");
  if constexpr (kOneTensor) {
    const auto components = extended_->components_of(value);
    std::uint64_t variable = 0;
    if constexpr (std::is_same_v<Value, Variable>) variable = value.state()->number();
    if (components.size() != 1 || detail::contributions_of(value) == Contributions::kPerReplica)
      return extended_->reduce_along(op, components, axes.values(), variable);
    const auto replicas = static_cast<std::size_t>(extended_->local_replicas());
    return extended_->reduce_along(op, std::vector<Tensor>(replicas, components[0]), axes.values(), variable);
  } else {
    return {};
  }
}

template <class Value>
auto Strategy::gather(const Value& value, int axis) const {
  using Structure = detail::ReducedOf<Value>;
  extended_->require_cross_replica("gather");
  const auto components = extended_->components_of(value);
  const std::vector<Tensor> gathered =
      extended_->gather(detail::structure_reduction(ReduceOp::kSum, value, components, Device()), axis);
  for_each_leaf(
      []<class L>(const L&) {
        static_assert(!Element<L>, "gather concatenates tensors: wrap numbers in tensors of one axis");
        static_assert(!std::is_same_v<L, IndexedSlices> || std::is_same_v<Structure, IndexedSlices>,
                      "gather makes tensors of slices: use TensorOrSlices inside of structures");
      },
      components[0]);
  if constexpr (std::is_same_v<Structure, IndexedSlices>)
    return gathered.front();
  else
    return from_leaves(components[0], LeafList(gathered.begin(), gathered.end()));
}

template <class Value>
auto Strategy::local_results(const Value& value) const {
  if constexpr (std::is_same_v<Value, Variable>) {
    return std::vector<Tensor>(value.components().begin(), value.components().end());
  } else if constexpr (Distributed<Value>) {
    return std::vector<typename Value::value_type>(value.components().begin(), value.components().end());
  } else if constexpr (detail::kHoldsDistributed<Value> || detail::kIsStructure<Value>) {
    detail::require_components(value, extended_->local_replicas());
    std::vector<typename detail::Selection<Value>::Component> results;
    results.reserve(static_cast<std::size_t>(extended_->local_replicas()));
    for (int replica = 0; replica < extended_->local_replicas(); ++replica)
      results.push_back(detail::component_of(value, replica));
    return results;
  } else {
    return std::vector<Value>{value};
  }
}

template <class Function>
auto Strategy::distribute_values_from_function(Function&& function) const {
  static_assert(std::is_invocable_v<Function&, ValueContext>,
                "the function of distribute_values_from_function() takes a ValueContext");
  extended_->require_cross_replica("distribute_values_from_function");
  std::vector<std::remove_cvref_t<std::invoke_result_t<Function&, ValueContext>>> values;
  values.reserve(static_cast<std::size_t>(extended_->local_replicas()));
  for (int replica = 0; replica < extended_->local_replicas(); ++replica) {
    values.push_back(
        function(ValueContext{.replica_id_in_sync_group = extended_->first_replica_id() + replica,
                              .num_replicas_in_sync = num_replicas_in_sync()}));
  }
  return PerReplica(std::move(values), num_replicas_in_sync());
}

}  // namespace cohort

#include <cohort/strategy/detail/variable_update.h>  // IWYU pragma: export
