// StrategyExtended is the engine behind a Strategy: which replicas this worker runs on
// which devices, the communicator that joins all of them, and the operations on tensors
// that the typed interface (`Strategy`, `ReplicaContext`) is built from. Libraries
// extend distribution here; training programs use Strategy.
//
// One thread at a time drives it (the one that calls `run`); its replicas run on the
// device threads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <cohort/collective/batch_reducer.h>
#include <cohort/collective/communicator.h>
#include <cohort/device/device.h>
#include <cohort/device/device_thread.h>
#include <cohort/value/context.h>
#include <cohort/value/variable.h>

namespace cohort {

class ReplicaContext;

/// What distinguishes one strategy from another.
struct StrategyLayout {
  std::string name = {};             ///< for messages, for example `MirroredStrategy`
  std::vector<Device> devices = {};  ///< where this worker's replicas run, one each
  int worker = 0;
  int workers = 1;

  /// Makes one seat per local replica in a communicator of all replicas of all workers.
  std::function<std::vector<std::unique_ptr<Communicator>>()> connect = {};
};

class StrategyExtended final : public VariableOwner, public std::enable_shared_from_this<StrategyExtended> {
 public:
  /// @throws InvalidArgument for no or repeated devices; what `connect` throws.
  [[nodiscard]] static std::shared_ptr<StrategyExtended> make(StrategyLayout layout);

  /// The strategy of code that chose none: one replica on the calling thread.
  [[nodiscard]] static const std::shared_ptr<StrategyExtended>& default_strategy();

  [[nodiscard]] const std::string& strategy_name() const override { return layout_.name; }
  [[nodiscard]] bool is_default() const noexcept { return this == default_strategy().get(); }
  [[nodiscard]] std::span<const Device> worker_devices() const noexcept { return layout_.devices; }
  [[nodiscard]] int local_replicas() const noexcept { return static_cast<int>(layout_.devices.size()); }
  [[nodiscard]] int workers() const noexcept { return layout_.workers; }
  [[nodiscard]] int num_replicas_in_sync() const noexcept { return local_replicas() * workers(); }

  /// The number, among all replicas, of this worker's first one.
  [[nodiscard]] int first_replica_id() const noexcept { return layout_.worker * local_replicas(); }

  /// Runs `body` once per local replica, each in its replica context. The exception of the lowest
  /// replica that failed by itself is thrown after all have ended.
  void call_for_each_replica(const std::function<void(ReplicaContext&)>& body);

  /// The seat of a local replica among all replicas.
  [[nodiscard]] Communicator& communicator(int local_replica) {
    return *seats_[static_cast<std::size_t>(local_replica)];
  }

  /// Cross-replica: `values[r]` is the list of tensors of local replica r; the result is one list,
  /// reduced over all replicas of all workers. op is SUM or MEAN; the MEAN of integers over several
  /// replicas is floating. All replicas must pass the same `structure` (see structure_fingerprint).
  [[nodiscard]] std::vector<Tensor> reduce(ReduceOp op, std::span<const std::vector<Tensor>> values,
                                           std::uint64_t structure = 0);

  /// Cross-replica: also sums along `axes` inside each replica first; MEAN divides by the number of
  /// elements that were summed, over all replicas.
  [[nodiscard]] Tensor reduce_along(ReduceOp op, std::span<const Tensor> values, std::span<const int> axes);

  /// Cross-replica: the replicas' tensors one after the other along `axis`.
  [[nodiscard]] Tensor gather(std::span<const Tensor> values, int axis);

  /// Inside local replica `local_replica`: the list reduced over all replicas.
  [[nodiscard]] std::vector<Tensor> all_reduce(int local_replica, ReduceOp op, std::span<const Tensor> values,
                                               std::uint64_t structure = 0);

  /// The same in the caller's tensors, which must not overlap; without conversion of dtypes.
  void all_reduce_in_place(int local_replica, ReduceOp op, std::span<const Tensor> tensors);

  /// @throws WrongContext inside a replica, or when another strategy is active.
  void require_cross_replica(const char* what) const;

  // What variables need (see VariableOwner).
  [[nodiscard]] int components() const override { return local_replicas(); }
  [[nodiscard]] std::vector<Tensor> mirror(const Tensor& initial_value) override;
  [[nodiscard]] Tensor aggregate(VariableAggregation aggregation, const Tensor& value,
                                 int local_replica) override;
  [[nodiscard]] std::shared_ptr<VariableOwner> share() override { return shared_from_this(); }

 private:
  using Team = std::vector<std::unique_ptr<DeviceThread>>;

  explicit StrategyExtended(StrategyLayout layout);
  void run_inline(const std::function<void(ReplicaContext&)>& body);
  void run_concurrently(const std::function<void(ReplicaContext&)>& body);
  [[nodiscard]] Team make_team() const;

  StrategyLayout layout_;
  std::vector<std::unique_ptr<Communicator>> seats_;
  std::vector<BatchReducer> reducers_;  // one per seat: each replica's thread uses its own
  std::deque<Team> teams_;  // one per depth of nested runs, made on first use; outer ones stay where they are
  std::size_t depth_ = 0;
};

}  // namespace cohort
