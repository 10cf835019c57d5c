// ShardedOptimizer spreads the work and the slots of another optimizer over all replicas, which ZeRO calls
// stage 1 [Rajbhandari, Rasley, Ruwase and He 2020]. With N replicas each keeps 1/N of the slots and updates
// 1/N of the elements: gradients are reduce-scattered, and the updated elements all-gathered, which moves the
// bytes of an all-reduce.
//
//     ShardedOptimizer optimizer(std::make_unique<Adam>(AdamOptions{.learning_rate = 0.01}));
//     optimizer.apply_gradients({{gradient, weights}, ...});      // as of Adam itself
//
// Shares are cut inside of variables, so they are equal whatever the sizes of these. Variables get the same
// bits as from the optimizer alone, on one node, and between nodes where the communication is `reproducible`:
// there the order of a sum may otherwise depend on the call that makes it.
//
// Checkpoints hold the slots as those of the optimizer alone, so that each restores the other's, and any
// number of workers restores them. Devices and workers are those of MirroredStrategy,
// MultiWorkerMirroredStrategy, or of one device; other strategies keep variables in other ways, and are
// refused.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <cohort/train/optimizers/optimizer.h>

namespace cohort {

class Communicator;
class OptimizerShare;

class ShardedOptimizer final : public Optimizer {
 public:
  /// `optimizer` has not been used yet. Its rate, or schedule, and its update options are taken over.
  /// @throws InvalidArgument for null; Unimplemented for one that is not elementwise, as Lamb.
  explicit ShardedOptimizer(std::unique_ptr<Optimizer> optimizer);
  ~ShardedOptimizer() override;

  /// Bytes of the slots of local replica `replica`; 0 before its first update or `make_slots`.
  [[nodiscard]] std::size_t slot_bytes(int replica = 0) const;

  // Of slots that are spread over the replicas; collective over the workers where a slot is read.
  [[nodiscard]] bool shares_slots() const noexcept override { return true; }
  [[nodiscard]] Tensor read_slot(const Variable& variable, std::size_t slot) const override;
  void assign_slot(const Variable& variable, std::size_t slot, const Tensor& value) override;

 private:
  struct Shares;

  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;

  /// The variables of the first step, or of `make_slots`, are those of all others.
  void step(const ReplicaContext& replica, const std::vector<GradientAndVariable>& gradients,
            const std::vector<SparseGradientAndVariable>& elsewhere, const ApplyOptions& options) override;
  /// `places` are those of the step's gradients in the plan.
  void step_in_share(OptimizerShare& share, Communicator* communicator,
                     const std::vector<std::size_t>& places, const ApplyOptions& options);
  void add_slots(std::span<const Variable> variables) override;
  [[nodiscard]] bool has_slots(const Variable& variable) const override;
  void swap_average(const Variable& variable) override;
  OptimizerShare& share_of(int local_replica);

  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Shares> shares_;
};

}  // namespace cohort
