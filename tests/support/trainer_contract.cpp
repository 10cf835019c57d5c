#include "worker_contracts.h"

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/trainer.h>

#include "../trainer/linear_model.h"

namespace cohort::testing {
namespace {

using Batch = LinearModel::Batch;
using ::testing::HasSubstr;

/// What the last worker throws.
struct Boom : std::runtime_error {
  Boom() : std::runtime_error("boom") {}
};

bool is_last(const Strategy& strategy) {
  const StrategyExtended& extended = strategy.extended();
  return extended.first_replica_id() + extended.local_replicas() == strategy.num_replicas_in_sync();
}

/// `train` throws Boom on the last worker, and what names that worker elsewhere.
void expect_named(const Strategy& strategy, const std::function<void()>& train) {
  const int workers = strategy.extended().workers();
  const int last = workers - 1;
  const int replicas = strategy.num_replicas_in_sync();
  try {
    train();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Boom&) {
    EXPECT_TRUE(is_last(strategy));
  } catch (const Aborted& aborted) {
    EXPECT_FALSE(is_last(strategy)) << aborted.what();
    // Of several devices, the replica is named as well.
    bool is_named = std::string(aborted.what()).find(fmt::format("worker {}", last)) != std::string::npos;
    for (int replica = replicas * last / workers; replica < replicas; ++replica)
      is_named |= std::string(aborted.what()).find(fmt::format("replica {}", replica)) != std::string::npos;
    EXPECT_TRUE(is_named) << aborted.what();
    EXPECT_THAT(aborted.what(), HasSubstr("boom"));
  }
}

/// Throws at the third batch of the last worker.
class Thrower : public Callback {
 public:
  void on_train_batch_begin(std::int64_t batch, const Logs& /*logs*/) override {
    if (batch == 2 && is_last(training().strategy())) throw Boom();
  }
};

/// Throws at the third update on the last worker.
class ThrowingRule : public MetricRule {
 public:
  explicit ThrowingRule(bool throws) : throws_(throws) {}
  [[nodiscard]] std::size_t sums() const override { return 1; }
  void update(const MetricBatch& /*batch*/, std::span<double> sums) const override {
    if (++sums[0] == 3 && throws_) throw Boom();
  }
  void compute(std::span<const double> sums, std::span<double> result) const override { result[0] = sums[0]; }

 private:
  bool throws_;
};

}  // namespace

void check_fit(Bootstrap& worker, int devices) {
  struct Outcome {
    std::vector<double> losses;
    float bias;
    std::vector<float> predictions;
  };
  const auto train = [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const LinearModel model;
    Sgd optimizer({.learning_rate = 0.1});
    Trainer trainer(strategy, model, optimizer,
                    {.distribute = {.auto_shard_policy = AutoShardPolicy::kData}});
    const History history =
        trainer.fit(linear_batches(13, 5), {.epochs = 2, .validation_data = linear_batches(7, 3)});
    std::vector<double> losses = history.of("loss");
    for (const double loss : history.of("val_loss")) losses.push_back(loss);
    const Tensor predictions = trainer.predict(linear_batches(9, 4));
    const auto values = predictions.span<float>();
    return Outcome{losses, model.parameters()[1].read().span<float>()[0], {values.begin(), values.end()}};
  };
  const Outcome alone = train(OneDeviceStrategy());
  const Outcome together = train(strategy_of(worker, devices));
  EXPECT_THAT(together.losses, ::testing::Pointwise(::testing::DoubleNear(1e-6), alone.losses));
  EXPECT_NEAR(together.bias, alone.bias, 1e-6);
  EXPECT_THAT(together.predictions, ::testing::Pointwise(::testing::FloatNear(1e-6F), alone.predictions));
}

void check_step_that_throws(Bootstrap& worker, int devices) {
  const Strategy strategy = strategy_of(worker, devices);
  const auto scope = strategy.scope();
  const LinearModel model;
  Sgd optimizer;
  std::atomic<int> steps = 0;
  Trainer<Batch> trainer(strategy, {.train = [&](ReplicaContext& replica, const Batch& mine) {
                           const Tensor outputs = model.forward(mine);
                           const bool is_last_replica =
                               replica.replica_id_in_sync_group() == replica.num_replicas_in_sync() - 1;
                           if (is_last_replica && ++steps == 3) throw Boom();
                           optimizer.apply_gradients(model.gradients(mine, outputs, {}));
                           return model.loss(mine, outputs);
                         }});
  expect_named(strategy, [&] { trainer.fit(linear_batches(13, 2), {.epochs = 2}); });
}

void check_callback_that_throws(Bootstrap& worker, int devices) {
  const Strategy strategy = strategy_of(worker, devices);
  const auto scope = strategy.scope();
  const LinearModel model;
  Sgd optimizer;
  Trainer trainer(strategy, model, optimizer);
  Thrower thrower;
  expect_named(strategy, [&] { trainer.fit(linear_batches(13, 2), {.callbacks = {thrower}}); });
}

void check_metric_that_throws(Bootstrap& worker, int devices) {
  const Strategy strategy = strategy_of(worker, devices);
  const auto scope = strategy.scope();
  const LinearModel model;
  Sgd optimizer;
  const Metric metric("throwing", std::make_shared<ThrowingRule>(is_last(strategy)));
  Trainer trainer(strategy, model, optimizer, {.metrics = {metric}});
  expect_named(strategy, [&] { trainer.fit(linear_batches(40, 8), {.epochs = 2}); });
}

void check_dataset_that_throws(Bootstrap& worker, int devices) {
  const Strategy strategy = strategy_of(worker, devices);
  const auto scope = strategy.scope();
  const LinearModel model;
  Sgd optimizer;
  Trainer trainer(strategy, model, optimizer);
  const auto data = Dataset<Batch>::from_tensor_slices(linear_examples(13))
                        .map([throws = is_last(strategy)](const Batch& example) {
                          if (throws) throw Boom();
                          return example;
                        })
                        .batch(2);
  expect_named(strategy, [&] { trainer.fit(data); });
}

}  // namespace cohort::testing
