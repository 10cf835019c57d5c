#include "training.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include <cohort/input/distribute.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callbacks/progress.h>
#include <cohort/trainer/trainer.h>

#include "timing.h"

namespace cohort::bench {
namespace {

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kSteps = 20'000;

using Batch = std::pair<Tensor, Tensor>;

/// One batch again and again, without threads that make it: only the loops differ.
DistributedDataset<Batch> batches_for(const Strategy& strategy) {
  const Batch batch{Tensor::zeros({kRows, kClasses}, DType::kFloat32), Tensor::zeros({kRows}, DType::kInt64)};
  return strategy.distribute_dataset(Dataset<Batch>::from_tensors(batch).repeat(),
                                     {.input = {.fetch_to_device = false, .per_replica_buffer_size = 0}});
}

/// A model that costs next to nothing: its predictions are its inputs.
class Identity {
 public:
  using Batch = bench::Batch;
  explicit Identity(const Strategy& strategy)
      : parameter_({.shape = {kClasses}}),
        losses_(strategy.run(
            [](const Tensor& inputs) { return Tensor::zeros({inputs.shape()[0]}, DType::kFloat32); },
            strategy.run([] { return Tensor::zeros({kRows}, DType::kFloat32); }))),
        gradients_(strategy.run([&] {
          return std::vector<GradientAndVariable>{{Tensor::zeros({kClasses}, DType::kFloat32), parameter_}};
        })) {}

  [[nodiscard]] std::vector<Variable> parameters() const { return {parameter_}; }
  [[nodiscard]] Tensor forward(const Batch& batch) const { return batch.first; }
  [[nodiscard]] Tensor loss(const Batch& batch, const Tensor& /*predictions*/) const {
    return losses_.local().rows(0, batch.first.shape()[0]);
  }
  [[nodiscard]] const std::vector<GradientAndVariable>& gradients(const Batch& /*batch*/,
                                                                  const Tensor& /*predictions*/) const {
    return gradients_.local();
  }

 private:
  Variable parameter_;
  PerReplica<Tensor> losses_;
  PerReplica<std::vector<GradientAndVariable>> gradients_;
};

class Overhead {
 public:
  Overhead(const TrainerBenchOptions& options, const TickClock& clock) : options_(options), clock_(clock) {}

  /// Times both loops, each of which makes `kSteps` steps, in turns.
  template <class ByHand, class Fit>
  void add(std::string name, ByHand by_hand, Fit fit) {
    by_hand();
    fit();
    std::vector<double> hand;
    std::vector<double> more;
    for (int loop = 0; loop < options_.loops; ++loop) {
      hand.push_back(step_us(by_hand));
      more.push_back(step_us(fit) - hand.back());
    }
    result_.rows.push_back({std::move(name), median(hand), median(more)});
  }

  [[nodiscard]] TrainerResult result() && {
    result_.loops = options_.loops;
    return std::move(result_);
  }

 private:
  template <class Loop>
  [[nodiscard]] double step_us(Loop loop) const {
    const std::uint64_t start = clock_.now();
    loop();
    return clock_.microseconds(clock_.now() - start) / kSteps;
  }

  const TrainerBenchOptions& options_;
  const TickClock& clock_;
  TrainerResult result_;
};

/// `step(batch)` on all replicas, so many times.
template <class Step>
void loop_by_hand(const Strategy& strategy, const DistributedDataset<Batch>& batches, Step step) {
  std::int64_t steps = 0;
  for (const PerReplica<Batch>& batch : batches) {
    strategy.run(step, batch);
    if (++steps == kSteps) return;
  }
}

void measure_step_function(const Strategy& strategy, const std::string& on, Overhead& overhead) {
  const auto batches = batches_for(strategy);
  Trainer<Batch> trainer(
      strategy, {.train = [](const Batch& mine) {
        return StepOutcome(LossSum{.sum = 1, .examples = static_cast<double>(mine.first.shape()[0])});
      }});
  std::vector<LossSum> sums(static_cast<std::size_t>(strategy.num_replicas_in_sync()));
  const auto step = [&](ReplicaContext& replica, const Batch& mine) {
    LossSum& own = sums[static_cast<std::size_t>(replica.replica_id_in_sync_group())];
    own.sum += 1;
    own.examples += static_cast<double>(mine.first.shape()[0]);
  };
  overhead.add(
      "step function" + on, [&] { loop_by_hand(strategy, batches, step); },
      [&] { trainer.fit(batches, {.steps_per_epoch = kSteps}); });
}

void measure_model(const Strategy& strategy, const std::string& on, Overhead& overhead) {
  const auto scope = strategy.scope();
  const auto batches = batches_for(strategy);
  const Identity model(strategy);
  Sgd optimizer;
  std::vector<LossSum> sums(static_cast<std::size_t>(strategy.num_replicas_in_sync()));
  const auto step = [&](ReplicaContext& replica, const Batch& mine) {
    const Tensor predictions = model.forward(mine);
    const Tensor losses = model.loss(mine, predictions);
    LossSum& own = sums[static_cast<std::size_t>(replica.replica_id_in_sync_group())];
    for (const float loss : losses.span<float>()) own.sum += static_cast<double>(loss);
    own.examples += static_cast<double>(losses.elements());
    optimizer.apply_gradients(model.gradients(mine, predictions),
                              {.aggregation = GradientAggregation::kSumInPlace,
                               .examples = static_cast<double>(losses.elements())});
  };
  const auto by_hand = [&] { loop_by_hand(strategy, batches, step); };
  Trainer<Batch> trainer(strategy, model, optimizer);
  overhead.add("model" + on, by_hand, [&] { trainer.fit(batches, {.steps_per_epoch = kSteps}); });

  Trainer<Batch> with_metrics(strategy, model, optimizer,
                              {.metrics = {metrics::sparse_categorical_accuracy()}});
  overhead.add("model with a metric" + on, by_hand,
               [&] { with_metrics.fit(batches, {.steps_per_epoch = kSteps}); });

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
  Progress line({.style = ProgressStyle::kLine, .stream = nowhere.get()});
  overhead.add("model with a metric and progress" + on, by_hand,
               [&] { with_metrics.fit(batches, {.steps_per_epoch = kSteps, .callbacks = {line}}); });
}

}  // namespace

TrainerResult measure(const TrainerBenchOptions& options, const CommandContext& context) {
  Overhead overhead(options, context.clock);
  measure_step_function(OneDeviceStrategy(), "", overhead);
  measure_model(OneDeviceStrategy(), "", overhead);
  measure_step_function(MirroredStrategy(cpu_devices(2)), " on two replicas", overhead);
  return std::move(overhead).result();
}

}  // namespace cohort::bench
