// What variables need of the strategy in whose scope they were made: how many replicas
// share them, on which devices they live, the collectives that keep them equal, and the
// point where the replicas of a run meet. Strategies implement it. Internal.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>

#include <cohort/collective/call_purpose.h>
#include <cohort/device/tensor.h>
#include <cohort/value/indexed_slices.h>

namespace cohort {

class VariableOwner;
class VariableState;
enum class VariableAggregation;
struct VariableOptions;

/// Where the components of a strategy's variables are.
enum class VariablePlacement {
  kMirrored,    ///< one on the device of every local replica
  kSingleCopy,  ///< one for all local replicas, on the parameter device
  kElsewhere,   ///< one for all workers, which another task keeps
};

/// Makes variables whose values other tasks keep.
class VariableKeeper {
 public:
  virtual ~VariableKeeper() = default;

  /// `options` are settled; `beside`, which may be null, is a variable of the same owner to colocate with.
  [[nodiscard]] virtual std::shared_ptr<VariableState> make(VariableOptions options,
                                                            const Tensor& initial_value,
                                                            const VariableState* beside,
                                                            std::shared_ptr<VariableOwner> owner) = 0;
};

class VariableOwner {
 public:
  virtual ~VariableOwner() = default;

  [[nodiscard]] virtual const std::string& strategy_name() const noexcept = 0;
  [[nodiscard]] virtual int local_replicas() const noexcept = 0;
  [[nodiscard]] virtual int num_replicas_in_sync() const noexcept = 0;
  [[nodiscard]] virtual int first_replica_id() const noexcept = 0;
  [[nodiscard]] virtual VariablePlacement variable_placement() const noexcept = 0;

  /// One device per component of a variable.
  [[nodiscard]] virtual std::span<const Device> variable_devices() const noexcept = 0;

  // The collectives of a variable say what they are for.

  /// The chief's value of `value`, on every worker. Collective over the workers.
  [[nodiscard]] virtual Tensor from_chief(const Tensor& value, CallPurpose& purpose) = 0;

  /// Inside local replica `local_replica`: the aggregate of what all replicas pass, not NONE.
  /// Collective over all replicas.
  [[nodiscard]] virtual Tensor aggregate(VariableAggregation aggregation, const Tensor& value,
                                         int local_replica, CallPurpose& purpose) = 0;

  /// The same for rows: those of all replicas concatenated, and for MEAN divided by the number of replicas.
  [[nodiscard]] virtual IndexedSlices aggregate_rows(VariableAggregation aggregation,
                                                     const IndexedSlices& rows, int local_replica,
                                                     CallPurpose& purpose) = 0;

  /// Inside local replica `local_replica`: ends the collectives of all replicas, because `error` keeps this
  /// one from taking part.
  virtual void abort_replicas(int local_replica, const std::exception_ptr& error) = 0;

  /// In cross-replica context: ends the collectives of all workers, because `error` keeps this one from
  /// taking part.
  virtual void abort_workers(const std::exception_ptr& error) = 0;

  /// In cross-replica context: the aggregate of one component per local replica, of all workers.
  /// Collective over the workers.
  [[nodiscard]] virtual Tensor aggregate_components(VariableAggregation aggregation,
                                                    std::span<const Tensor> components,
                                                    CallPurpose& purpose) = 0;

  /// The number of the variable that is being made, the same on all workers.
  [[nodiscard]] virtual std::uint64_t next_variable_number() noexcept = 0;

  /// Who keeps the variables, for kElsewhere; null otherwise.
  [[nodiscard]] virtual VariableKeeper* variable_keeper() const noexcept = 0;

  /// Told of every variable that is made for this strategy.
  virtual void adopt(const std::shared_ptr<VariableState>& variable) = 0;

  /// Keeps the strategy's devices and communicators alive as long as its variables.
  [[nodiscard]] virtual std::shared_ptr<VariableOwner> share() = 0;
};

/// One replica's part in a meeting.
struct MergeRequest {
  std::string_view call;           ///< what the replica called, for messages
  std::type_index argument_types;  ///< what `arguments` points to; equal on all replicas
  void* arguments;

  /// Called with the `arguments` of all replicas, in their order; its result goes to all of them.
  std::function<std::shared_ptr<void>(std::span<void* const> arguments_by_replica)> merge;

  const CallPurpose& purpose;  ///< on which all replicas must agree
};

/// Where the replicas of one `run` meet: all of them pause, and one function runs for all.
/// `ReplicaContext::merge_call` is this with types; variables that replicas make or update
/// together use it as well.
class MergePoint {
 public:
  virtual ~MergePoint() = default;

  /// Waits for the other local replicas. Replica 0's `merge` runs in cross-replica context.
  /// @throws WrongContext when the replicas do not all make the same call.
  virtual std::shared_ptr<void> meet(int local_replica, MergeRequest& request) = 0;

  /// Says that the replica is about to wait for all others in a collective. Replicas that have returned, or
  /// wait here for a merge, will not make it. `purpose` lives until `end_collective`.
  virtual void begin_collective(int local_replica, const CallPurpose& purpose) = 0;
  virtual void end_collective(int local_replica) = 0;
};

}  // namespace cohort
