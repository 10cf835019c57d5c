// StrategyExtended is the engine behind a Strategy: which replicas this worker runs on
// which devices, the communicator that joins all of them, and the operations on tensors
// that the typed interface (`Strategy`, `ReplicaContext`) is built from. Libraries
// extend distribution here; training programs use Strategy.
//
// One thread at a time drives it (the one that calls `run`); its replicas run on the
// device threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/device/device.h>
#include <cohort/strategy/cross_device_ops.h>
#include <cohort/strategy/structure_reduction.h>
#include <cohort/value/context.h>
#include <cohort/value/detail/variable_owner.h>
#include <cohort/value/variable.h>
#include <cohort/value/variable_creator_scope.h>

namespace cohort {

class Bootstrap;
class DeviceRoute;
class LeafReducer;
class ReplicaContext;
class ReplicaTeam;

/// What distinguishes one strategy from another.
struct StrategyLayout {
  std::string name = {};             ///< for messages, for example `MirroredStrategy`
  std::vector<Device> devices = {};  ///< where this worker's replicas run, one each
  int worker = 0;
  int workers = 1;
  std::optional<bool> is_chief = {};  ///< writes checkpoints and summaries for all; absent: worker 0 does
  Bootstrap* bootstrap = nullptr;     ///< to the other workers; null for a process on its own

  /// Where the single copy of each variable lives; absent: a component on each of `devices`.
  std::optional<Device> parameter_device = {};

  /// Who keeps the variables, if other tasks do; null: this worker and its parameter device or devices.
  std::shared_ptr<VariableKeeper> variable_keeper = {};

  /// How values are reduced; null: CollectiveAllReduce over all workers.
  std::shared_ptr<CrossDeviceOps> cross_device_ops = {};

  /// Makes one communicator per local replica, over all replicas of all workers, on the host. For replicas on
  /// GPUs the strategy makes those that take GPU tensors.
  std::function<std::vector<std::unique_ptr<Communicator>>()> connect = {};

  /// Makes this worker's communicator over the workers; absent: the one of its only replica serves.
  std::function<std::unique_ptr<Communicator>()> connect_workers = {};
};

class StrategyExtended final : public VariableOwner, public std::enable_shared_from_this<StrategyExtended> {
 public:
  /// @throws InvalidArgument for no or repeated devices, and on all workers where some replicas are on GPUs
  /// and others on CPUs; Unavailable for a device that does not exist; what `connect` throws.
  [[nodiscard]] static std::shared_ptr<StrategyExtended> make(StrategyLayout layout);
  ~StrategyExtended() override;

  StrategyExtended(const StrategyExtended&) = delete;
  StrategyExtended& operator=(const StrategyExtended&) = delete;

  /// The strategy of code that chose none: one replica on the calling thread.
  [[nodiscard]] static const std::shared_ptr<StrategyExtended>& default_strategy();

  [[nodiscard]] const std::string& strategy_name() const noexcept override { return layout_.name; }
  [[nodiscard]] bool is_default() const noexcept { return this == default_strategy().get(); }

  /// Where this worker's replicas run. @throws WrongContext for the default strategy, which chose none.
  [[nodiscard]] std::span<const Device> worker_devices() const {
    require_chosen("worker_devices");
    return layout_.devices;
  }

  /// Where local replica `local_replica` runs.
  [[nodiscard]] Device device(int local_replica) const {
    return layout_.devices[static_cast<std::size_t>(local_replica)];
  }

  /// Where variables live, a component on each: the worker devices, or a single one.
  /// @throws WrongContext for the default strategy, which chose none.
  [[nodiscard]] std::span<const Device> parameter_devices() const {
    require_chosen("parameter_devices");
    return parameter_devices_;
  }

  /// Where state lives that belongs to all variables together; see `update_non_slot`.
  [[nodiscard]] std::span<const Device> non_slot_devices() const noexcept { return parameter_devices_; }

  [[nodiscard]] int local_replicas() const noexcept override {
    return static_cast<int>(layout_.devices.size());
  }
  [[nodiscard]] int workers() const noexcept { return layout_.workers; }
  [[nodiscard]] int num_replicas_in_sync() const noexcept override { return local_replicas() * workers(); }

  /// The number, among all replicas, of this worker's first one.
  [[nodiscard]] int first_replica_id() const noexcept override { return layout_.worker * local_replicas(); }

  /// Whether this worker writes checkpoints and summaries: the chief does.
  [[nodiscard]] bool should_checkpoint() const noexcept {
    return layout_.is_chief.value_or(layout_.worker == 0);
  }
  [[nodiscard]] bool should_save_summary() const noexcept { return should_checkpoint(); }

  /// Runs `body` once per local replica, each in its replica context. The exception of the lowest
  /// replica that failed by itself is thrown after all have ended.
  void call_for_each_replica(const std::function<void(ReplicaContext&)>& body);

  /// The communicator of a local replica, over all replicas.
  [[nodiscard]] Communicator& communicator(int local_replica) {
    return *communicators_[static_cast<std::size_t>(local_replica)];
  }

  /// Whether a replica of this run could not make a collective, so that those of the others were aborted.
  [[nodiscard]] bool has_aborted_replicas() const noexcept { return replicas_aborted_; }

  /// A local replica in messages: `replica 3 (worker 1, host n1, cpu:1)`.
  [[nodiscard]] std::string replica_name(std::size_t local_replica) const;

  /// One destination per local replica, on its device.
  [[nodiscard]] Destinations destinations() const { return Destinations(layout_.devices); }

  /// This worker's communicator over the workers, for the thread that drives the strategy.
  [[nodiscard]] Communicator& workers_communicator() const noexcept {
    return workers_communicator_ != nullptr ? *workers_communicator_ : *communicators_.front();
  }

  /// Runs `call`, which prepares this worker's next collective. If it throws, this worker cannot make that
  /// collective, and the other workers would take a later one for it; so the collectives of all workers are
  /// aborted with its error. @throws what `call` throws.
  template <class Call>
  decltype(auto) or_abort_workers(Call&& call);

  /// A value as one structure per local replica, or as itself where it is plain, to be reduced or gathered.
  /// @throws InvalidArgument, on all workers, for a structure with PerReplica values of another strategy.
  template <class Value>
  [[nodiscard]] auto components_of(const Value& value) {
    return or_abort_workers([&] { return detail::components_of(value, local_replicas()); });
  }

  /// How this strategy reduces values.
  [[nodiscard]] CrossDeviceOps& cross_device_ops() const noexcept { return *cross_device_ops_; }

  /// Whether the program chose them for this strategy; then replicas that reduce meet and use them, too.
  [[nodiscard]] bool has_own_cross_device_ops() const noexcept { return layout_.cross_device_ops != nullptr; }

  /// SUM or MEAN over all replicas of each leaf of a structure, on `destinations`: one component for
  /// each, equal on all workers. PerReplica values, structures of them, and ON_READ variables have the
  /// replicas' contributions. Of a Mirrored value, another variable, or a plain value with one worker,
  /// the MEAN is the value as it is, and the SUM an error; with several workers a plain value is its
  /// worker's only contribution, and so is a Mirrored one that is on one device. Inside structures, and in
  /// strategies that keep single copies of variables, the components of a Mirrored value are contributions.
  /// @throws WrongContext inside a replica; InvalidArgument for replicas that differ, or such a SUM.
  template <class Value>
  [[nodiscard]] auto reduce_to(SumOrMean op, const Value& value, const Destinations& destinations,
                               const CommunicationOptions& options = {});

  /// The same for several values at once, in few collectives: one result per pair, in order.
  template <class Value>
  [[nodiscard]] auto batch_reduce_to(SumOrMean op, const std::vector<std::pair<Value, Destinations>>& pairs,
                                     const CommunicationOptions& options = {});

  /// Copies of `value` on each destination of this worker; nothing goes to other workers.
  /// @throws WrongContext inside a replica; Unimplemented for the default strategy.
  [[nodiscard]] Mirrored<Tensor> broadcast_to(const Tensor& value, const Destinations& destinations);
  [[nodiscard]] Mirrored<IndexedSlices> broadcast_to(const IndexedSlices& value,
                                                     const Destinations& destinations);

  /// A number is the same everywhere already. @throws as above.
  template <Element T>
  [[nodiscard]] T broadcast_to(T value, const Destinations& /*destinations*/) {
    require_broadcast();
    return value;
  }

  /// The type-erased form of reduce_to and batch_reduce_to: for each of `values`, the leaves of each
  /// component of the result.
  [[nodiscard]] std::vector<std::vector<LeafList>> reduce(ReduceOp op,
                                                          std::span<const StructureReduction> values,
                                                          const CommunicationOptions& options);

  /// Cross-replica: also sums along `axes` inside each replica first; MEAN divides by the number of
  /// elements that were summed, over all replicas. `variable`: the number of the one whose value it is, or 0.
  [[nodiscard]] Tensor reduce_along(ReduceOp op, std::span<const Tensor> values, std::span<const int> axes,
                                    std::uint64_t variable = 0);

  /// Cross-replica: for each leaf, the replicas' tensors one after the other along `axis`; IndexedSlices
  /// become dense first. A plain value is its worker's only contribution.
  [[nodiscard]] std::vector<Tensor> gather(const StructureReduction& value, int axis);

  /// Inside local replica `local_replica`: the list reduced over all replicas by collectives. All
  /// replicas must pass the same `structure` (see structure_fingerprint).
  [[nodiscard]] LeafList all_reduce(int local_replica, ReduceOp op, std::span<const TensorOrSlices> values,
                                    std::uint64_t structure = 0, const CommunicationOptions& options = {});

  /// @throws WrongContext inside a replica, or when another strategy is active.
  void require_cross_replica(const char* what) const;

  /// Calls `function(variable, args...)` once per local component of the variable, in update context: there
  /// every variable stands for its component of that number. Distributed arguments arrive as their component.
  /// Results come back as Mirrored, after all updates. From inside a replica it is a `merge_call` with the
  /// replicas' arguments. A single copy is updated once, with the arguments of the first replica.
  /// @throws WrongContext when another strategy is active; InvalidArgument for a variable that this strategy
  /// does not mirror, and for PerReplica arguments if the variable's aggregation keeps its components equal.
  template <class Function, class... Args>
  auto update(const Variable& variable, Function&& function, const Args&... args);

  /// The same without a variable: `function(args...)` once per device, which must be of
  /// `non_slot_devices`. @throws WrongContext inside a replica, or when another strategy is active.
  template <class Function, class... Args>
  auto update_non_slot(std::span<const Device> devices, Function&& function, const Args&... args);

  /// While the result lives, variables made on this thread go to the devices of `variable`.
  /// @throws WrongContext outside this strategy's scope and replicas; InvalidArgument for a foreign variable.
  [[nodiscard]] VariableCreatorScope colocate_vars_with(const Variable& variable) const;

  [[nodiscard]] bool variable_created_in_scope(const Variable& variable) const noexcept;

  /// The variable of this strategy whose component this is; nothing for any other tensor, also a part of one.
  [[nodiscard]] std::optional<Variable> value_container(const Tensor& component) const;

  // What variables need (see VariableOwner).
  [[nodiscard]] VariablePlacement variable_placement() const noexcept override;
  [[nodiscard]] VariableKeeper* variable_keeper() const noexcept override {
    return layout_.variable_keeper.get();
  }
  [[nodiscard]] std::span<const Device> variable_devices() const noexcept override {
    return parameter_devices_;
  }
  [[nodiscard]] Tensor from_chief(const Tensor& value, CallPurpose& purpose) override;
  [[nodiscard]] Tensor aggregate(VariableAggregation aggregation, const Tensor& value, int local_replica,
                                 CallPurpose& purpose) override;
  [[nodiscard]] IndexedSlices aggregate_rows(VariableAggregation aggregation, const IndexedSlices& rows,
                                             int local_replica, CallPurpose& purpose) override;
  void abort_replicas(int local_replica, const std::exception_ptr& error) override;
  void abort_workers(const std::exception_ptr& error) override;
  [[nodiscard]] Tensor aggregate_components(VariableAggregation aggregation,
                                            std::span<const Tensor> components,
                                            CallPurpose& purpose) override;
  [[nodiscard]] std::uint64_t next_variable_number() noexcept override { return ++variables_made_; }
  void adopt(const std::shared_ptr<VariableState>& variable) override;
  [[nodiscard]] std::shared_ptr<VariableOwner> share() override { return shared_from_this(); }

 private:
  friend class ReplicaContext;

  explicit StrategyExtended(StrategyLayout layout);

  void run_inline(const std::function<void(ReplicaContext&)>& body);
  void run_concurrently(const std::function<void(ReplicaContext&)>& body);
  void take_communicators(std::vector<std::unique_ptr<Communicator>> communicators);
  [[nodiscard]] LeafReducer& reducer(int local_replica) const noexcept {
    return *reducers_[static_cast<std::size_t>(local_replica)];
  }
  [[nodiscard]] std::unique_ptr<ReplicaTeam> make_team() const;
  /// As the public functions without `_for`, in which the purpose is that of the call itself.
  [[nodiscard]] std::vector<std::vector<LeafList>> reduce_for(CallPurpose& purpose, ReduceOp op,
                                                              std::span<const StructureReduction> values,
                                                              const CommunicationOptions& options);
  [[nodiscard]] LeafList all_reduce_for(CallPurpose& purpose, int local_replica, ReduceOp op,
                                        std::span<const TensorOrSlices> values,
                                        const CommunicationOptions& options);
  void require_chosen(const char* what) const;
  void require_reducible(ReduceOp op, const StructureReduction& value) const;
  [[nodiscard]] bool contributes(ReduceOp op, Contributions leaf) const;
  [[nodiscard]] bool is_kept(ReduceOp op, const StructureReduction& value) const;
  void require_own(const StructureReduction& value) const;
  void require_one_form(const StructureReduction& value) const;
  void require_alike_leaf(const StructureReduction& value, std::size_t leaf) const;
  [[nodiscard]] StructureReduction summed_along(ReduceOp op, std::span<const Tensor> values,
                                                std::span<const int> axes) const;
  void require_broadcast() const;
  [[nodiscard]] Components broadcast_leaf(const TensorOrSlices& value, const Destinations& destinations);

  template <class Function, class... Args>
  auto update_checked(const Variable& variable, Function& function, const Args&... args);
  template <class Function, class... Args>
  auto update_across(const Variable& variable, Function& function, const Args&... args);
  void require_updatable(const Variable& variable) const;
  [[nodiscard]] bool keeps_equal(const Variable& variable) const noexcept;

  /// Calls `body` in update context for each component of the variable, on its device.
  void update_components(const Variable& variable, const std::function<void(int component)>& body);

  /// The same for each of `devices`, with its number among the parameter devices.
  void update_components(std::span<const Device> devices, const std::function<void(int component)>& body);
  void update_component(int component, Device device, const std::function<void(int component)>& body);

  StrategyLayout layout_;
  std::vector<Device> parameter_devices_;
  std::vector<std::weak_ptr<VariableState>> variables_;
  std::uint64_t variables_made_ = 0;
  std::unique_ptr<const DeviceRoute> route_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  // of all replicas, one per local replica
  std::unique_ptr<Communicator> workers_communicator_;        // where a worker has several replicas
  std::vector<std::unique_ptr<LeafReducer>> reducers_;        // one per local replica, whose thread uses it
  std::shared_ptr<CrossDeviceOps> cross_device_ops_;
  std::vector<std::unique_ptr<ReplicaTeam>> teams_;  // one per depth of nested runs, made on first use
  std::size_t depth_ = 0;
  std::atomic<bool> replicas_aborted_{false};  // since a replica could not make a collective
};

// ---- implementation of the templates ----

namespace detail {

/// `results` as the components of a Mirrored; each looks like `like`.
template <class Structure>
[[nodiscard]] Mirrored<Structure> mirrored_like(const Structure& like, std::span<const LeafList> results) {
  std::vector<Structure> components;
  components.reserve(results.size());
  for (const LeafList& leaves : results) components.push_back(from_leaves(like, leaves));
  return Mirrored<Structure>(std::move(components));
}

}  // namespace detail

template <class Call>
decltype(auto) StrategyExtended::or_abort_workers(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    abort_workers(std::current_exception());
    throw;
  }
}

template <class Value>
auto StrategyExtended::reduce_to(SumOrMean op, const Value& value, const Destinations& destinations,
                                 const CommunicationOptions& options) {
  require_cross_replica("reduce_to");
  const auto components = components_of(value);
  const StructureReduction reduction = detail::structure_reduction(op, value, components, destinations);
  const auto results = reduce(op, {&reduction, 1}, options);
  return detail::mirrored_like<detail::ReducedOf<Value>>(components[0], results.front());
}

template <class Value>
auto StrategyExtended::batch_reduce_to(SumOrMean op, const std::vector<std::pair<Value, Destinations>>& pairs,
                                       const CommunicationOptions& options) {
  require_cross_replica("batch_reduce_to");
  std::vector<StructureReduction> reductions;
  reductions.reserve(pairs.size());
  for (const auto& [value, destinations] : pairs) {
    reductions.push_back(detail::structure_reduction(op, value, components_of(value), destinations));
  }
  const auto results = reduce(op, reductions, options);
  std::vector<Mirrored<detail::ReducedOf<Value>>> mirrored;
  mirrored.reserve(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    mirrored.push_back(
        detail::mirrored_like<detail::ReducedOf<Value>>(components_of(pairs[i].first)[0], results[i]));
  }
  return mirrored;
}

}  // namespace cohort
