// A DistributedModel trains one module of libtorch on several workers or replicas, each with its own examples
// (data-parallel training). It makes all of them begin with the first one's parameters and buffers, and its
// `backward` leaves the mean of all gradients in the parameters' `grad()`:
//
//     libtorch::DistributedModel model(net, strategy);
//     for (const auto& [inputs, labels] : batches) {
//       optimizer.zero_grad();
//       model.backward(torch::nn::functional::cross_entropy(net->forward(inputs), labels));
//       optimizer.step();
//     }
//
// Gradients lie in buckets, whose memory `grad()` shows. Once the backward pass has filled a bucket, its
// all-reduce begins, while the pass goes on. The buckets' order is that of the first pass. Clear gradients
// with `zero_grad`, best by undefining them (its default since libtorch 2.0): a gradient that is still there
// is added to, as without workers. A gradient that was kept from one step changes in the next.
//
// Gradients of 16 bits are added in float32, over the passes and over the workers of a node, and rounded once
// each; where the strategy's communication is `reproducible`, once over all workers.
//
// All workers call `backward` equally often; `join` is for those that cannot. A parameter that a pass does
// not reach counts as zero; where no worker's pass reaches it, its gradient stays as it was. A worker that
// throws within `backward` or `join`, or that an exception takes out of the scope of its DistributedModel,
// ends the call for all workers, with an error that names it.
//
// The module, its parameters and the strategy stay as they are and outlive this. Parameters lie on CPUs. One
// thread at a time uses it, the one that uses the strategy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <ATen/Tensor.h>

#include <cohort/strategy/replica_context.h>
#include <cohort/strategy/strategy.h>

namespace torch::nn {
class Module;
}

namespace cohort::libtorch {

/// What becomes of buffers, such as a batch normalization's running statistics, in each `backward`.
enum class BufferExchange : std::uint8_t {
  kBroadcast,  ///< all get those of the first worker
  kMean,       ///< floating ones become the mean of all workers; others those of the first
  kNone,       ///< each worker keeps its own
};

struct DistributedModelOptions {
  /// Of the workers' gradients. Before a pass whose gradients are to be summed, clear those of the last one:
  /// all workers have them, so that they would be added as often.
  SumOrMean op = ReduceOp::kMean;
  std::size_t bytes_per_bucket = 0;  ///< 0 chooses by cost
  BufferExchange buffers = BufferExchange::kBroadcast;
};

class DistributedModel {
 public:
  using Module = std::shared_ptr<torch::nn::Module>;

  /// For strategies with one replica in each process; in cross-replica context. Collective.
  /// @throws InvalidArgument where workers have other parameters or buffers than the others, naming them and
  /// the first difference; for parameters that are not on a CPU, for one without gradients only, and for a
  /// strategy with several replicas in a process.
  DistributedModel(Module module, const Strategy& strategy, const DistributedModelOptions& options = {});

  /// For one replica of several in this process, inside `run`: each has a module of its own.
  DistributedModel(Module module, const ReplicaContext& replica, const DistributedModelOptions& options = {});

  /// The same for a module in a holder, as `torch::nn::Linear`.
  template <class Holder, class Place>
  requires requires(const Holder& holder) { holder.ptr(); }
  DistributedModel(const Holder& holder, const Place& place, const DistributedModelOptions& options = {})
      : DistributedModel(Module(holder.ptr()), place, options) {}

  ~DistributedModel();
  DistributedModel(const DistributedModel&) = delete;
  DistributedModel& operator=(const DistributedModel&) = delete;

  /// `loss.backward()`, after which the gradients are those of all workers. Collective.
  /// @throws what libtorch throws; Unimplemented for sparse gradients; what all_reduce throws.
  void backward(const at::Tensor& loss);

  /// While it lives, `backward` leaves this worker's own gradients, to which the next passes add: of several
  /// parts of a batch, only the last is reduced, and brings the sum of all of them.
  class [[nodiscard]] NoSync;
  NoSync no_sync();

  /// Runs `steps`, which may call `backward` as often as this worker has batches. Then it takes part in the
  /// passes of the others, with a weight of zero: means are over the workers that have a batch. In the end
  /// all have the parameters and buffers of the one that made the most passes. Collective.
  /// @throws what `steps` throws; what the collectives throw.
  void join(const std::function<void()>& steps);

  /// How many all-reduces a pass makes.
  [[nodiscard]] std::size_t bucket_count() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class DistributedModel::NoSync {
 public:
  explicit NoSync(Impl& impl);
  ~NoSync();
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  Impl& impl_;
};

}  // namespace cohort::libtorch
