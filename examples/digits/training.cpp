#include "training.h"

#include <chrono>

#include <cohort/cohort.h>

#include "training_checkpoints.h"

namespace digits {
namespace {

using namespace cohort;

/// Every worker reads all images and keeps its share of each batch.
constexpr DistributeOptions kWholeDataset{.auto_shard_policy = AutoShardPolicy::kData};

}  // namespace

void add(Score& total, const Score& part) {
  total.loss += part.loss;
  total.correct += part.correct;
  total.rows += part.rows;
}

double test_accuracy(const Strategy& strategy, const Mlp& model, const Dataset<Batch>& test_batches) {
  Score total;
  for (const auto& batch : strategy.distribute_dataset(test_batches, kWholeDataset)) {
    const auto scores = strategy.run([&](const Batch& mine) { return model.evaluate(mine); }, batch);
    add(total, strategy.reduce(ReduceOp::kSum, scores));
  }
  return static_cast<double>(total.correct) / static_cast<double>(total.rows);
}

Results train(const Options& options, const Strategy& strategy, const TrainingPlan& plan) {
  const Digits digits = load_digits(options.data);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const auto batches =
      Dataset<Batch>::from_tensor_slices(digits.train)
          .shard({.count = plan.share.num_input_pipelines, .index = plan.share.input_pipeline_id})
          .shuffle({.seed = seed})
          .batch(options.batch);
  const auto test_batches = Dataset<Batch>::from_tensor_slices(digits.test).batch(options.batch);

  auto scope = strategy.scope();
  const Mlp model(options.hidden, seed);
  Sgd optimizer({.learning_rate = options.learning_rate});
  const auto train_step = [&](const Batch& mine) {
    const Step step = model.step(mine, options.batch);
    optimizer.apply_gradients(step.gradients);
    return step.score;
  };

  DatasetPosition at;
  Score total;  // of the epoch, so far
  TrainingCheckpoints checkpoints(options, strategy, model, optimizer, at, total);

  Results results{options.strategy, strategy.num_replicas_in_sync(), {}, 0};
  const std::int64_t rows = digits.train.images.shape()[0] / plan.share.num_input_pipelines;
  logging::debug("the data is loaded, the model made");
  const auto epochs = static_cast<std::uint64_t>(options.epochs);
  Progress progress(plan.reports, options.epochs, (rows + options.batch - 1) / options.batch, at);
  const auto steps = strategy.distribute_dataset(batches, kWholeDataset);
  for (; at.pass < epochs; at = {.pass = at.pass + 1}) {
    const auto start = std::chrono::steady_clock::now();
    for (auto batch = steps.begin_at(at); batch != steps.end();) {
      checkpoints.before_step();
      add(total, strategy.reduce(ReduceOp::kSum, strategy.run(train_step, *batch)));
      ++batch;
      at = batch.position();
      plan.after_step();
      progress.step();
      checkpoints.after_step();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const auto count = static_cast<double>(total.rows);
    results.epochs.push_back({static_cast<int>(at.pass) + 1, total.loss / count,
                              static_cast<double>(total.correct) / count, seconds.count()});
    total = {};
    progress.end_epoch(results.epochs.back());
    plan.after_epoch(model, results.epochs.back().number);
  }
  checkpoints.finish();
  if (results.epochs.empty()) plan.after_epoch(model, options.epochs);  // there was nothing left to train
  results.test_accuracy = test_accuracy(strategy, model, test_batches);
  return results;
}

}  // namespace digits
