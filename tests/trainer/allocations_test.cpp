// After the first step, what fit asks for in a step is what the same loop by hand asks for.
#include <gmock/gmock.h>

#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/trainer.h>

#include "../../benchmarks/dispatch/allocations.h"
#include "../strategy/strategies.h"

namespace cohort::testing {
namespace {

using Batch = std::pair<Tensor, Tensor>;

DistributedDataset<Batch> batches_for(const Strategy& strategy) {
  const Batch batch{Tensor::zeros({8, 4}, DType::kFloat32), Tensor::zeros({8}, DType::kInt64)};
  return strategy.distribute_dataset(Dataset<Batch>::from_tensors(batch).repeat(),
                                     {.input = {.per_replica_buffer_size = 0}});
}

/// Calls of `new` in 100 steps of `loop(steps)`, of which what comes once in a loop is no part.
template <class Loop>
std::size_t in_100_steps(Loop loop) {
  const auto in = [&](std::int64_t steps) {
    const std::size_t before = bench::allocations();
    loop(steps);
    return bench::allocations() - before;
  };
  in(4);
  const std::size_t few = in(10);
  return in(110) - few;
}

class Nothing : public Callback {};

class FitAllocations : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(FitAllocations);

TEST_P(FitAllocations, NoneBesideThoseOfTheLoopByHand) {
  const auto scope = strategy_.scope();
  const auto batches = batches_for(strategy_);
  const auto losses = per_replica(strategy_, [](int) { return Tensor::zeros({8}, DType::kFloat32); });
  const auto loss_of = [&](const Batch& mine) { return losses.local().rows(0, mine.first.shape()[0]); };
  const std::size_t by_hand = in_100_steps([&](std::int64_t steps) {
    auto pass = batches.iterate();
    for (std::int64_t step = 0; step < steps; ++step)
      strategy_.run([&](const Batch& mine) { static_cast<void>(loss_of(mine)); }, pass.get_next());
  });

  Nothing nothing;
  Trainer<Batch> trainer(strategy_,
                         {.train =
                              [&](const Batch& mine) {
                                StepOutcome outcome(loss_of(mine));
                                outcome.labels = mine.second;
                                outcome.predictions = mine.first;
                                return outcome;
                              }},
                         {.metrics = {metrics::sparse_categorical_accuracy()}});
  EXPECT_EQ(in_100_steps([&](std::int64_t steps) {
              trainer.fit(batches, {.steps_per_epoch = steps, .callbacks = {nothing}});
            }),
            by_hand);
}

}  // namespace
}  // namespace cohort::testing
