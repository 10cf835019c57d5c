#include "training.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>

#include <cohort/cohort.h>

namespace digits {
namespace {

using namespace cohort;

/// Every worker reads all images and keeps its share of each batch.
constexpr DistributeOptions kWholeDataset{.auto_shard_policy = AutoShardPolicy::kData};

/// Shows how far the training is, and keeps what each epoch came to.
class Report final : public Callback {
 public:
  Report(const TrainingPlan& plan, const Mlp& model, int epochs, std::int64_t steps, Results& results)
      : plan_(plan), model_(model), progress_(plan.reports, epochs, steps), results_(results) {}

  void on_epoch_begin(int epoch, const Logs& /*logs*/) override {
    number_ = epoch + 1;
    start_ = std::chrono::steady_clock::now();
  }
  void on_train_batch_end(std::int64_t batch, const Logs& /*logs*/) override {
    plan_.after_step();
    progress_.step(number_, batch + 1);
  }
  void on_epoch_end(int /*epoch*/, Logs& logs) override {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    results_.epochs.push_back({number_, *logs.find("loss"), *logs.find("accuracy"), seconds.count()});
    progress_.end_epoch(results_.epochs.back());
    plan_.after_epoch(model_, number_);
  }

 private:
  const TrainingPlan& plan_;
  const Mlp& model_;
  Progress progress_;
  Results& results_;
  int number_ = 1;
  std::chrono::steady_clock::time_point start_;
};

StepOutcome outcome_of(const Score& score, const Mean& accuracy) {
  const auto rows = static_cast<double>(score.rows);
  if (rows > 0) accuracy.update_state(static_cast<double>(score.correct) / rows, rows);
  return LossSum{.sum = score.loss, .examples = rows};
}

FitCheckpoint checkpoint_of(const Options& options) {
  if (!options.resume && !options.checkpoint.empty() && !list_checkpoints(options.checkpoint).empty())
    throw UsageError(
        fmt::format("--checkpoint {}: there are checkpoints; add --resume to go on from the newest "
                    "one, or name another folder",
                    options.checkpoint));
  return {.folder = options.checkpoint,
          .manager = {.save_every_steps = options.every, .memory_every = options.memory_every}};
}

double accuracy_on(Trainer<Batch>& trainer, const Options& options, const Batch& images) {
  return *trainer.evaluate(Dataset<Batch>::from_tensor_slices(images).batch(options.batch)).find("accuracy");
}

}  // namespace

double test_accuracy(const Options& options, const Strategy& strategy, const Mlp& model,
                     const Digits& digits) {
  const auto scope = strategy.scope();
  const Mean accuracy("accuracy");
  Trainer<Batch> trainer(
      strategy, {.test = [&](const Batch& mine) { return outcome_of(model.evaluate(mine), accuracy); }},
      {.step_metrics = {accuracy}, .distribute = kWholeDataset});
  return accuracy_on(trainer, options, digits.test);
}

Results train(const Options& options, const Strategy& strategy, const TrainingPlan& plan) {
  const Digits digits = load_digits(options.data);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const auto batches =
      Dataset<Batch>::from_tensor_slices(digits.train)
          .shard({.count = plan.share.num_input_pipelines, .index = plan.share.input_pipeline_id})
          .shuffle({.seed = seed})
          .batch(options.batch);

  const auto scope = strategy.scope();
  const Mlp model(options.hidden, seed);
  const auto parameters = model.parameters();
  Sgd optimizer({.learning_rate = options.learning_rate});
  const Mean accuracy("accuracy");
  Trainer<Batch> trainer(strategy,
                         {.train =
                              [&](const Batch& mine) {
                                const Step step = model.step(mine, options.batch);
                                optimizer.apply_gradients(step.gradients);
                                return outcome_of(step.score, accuracy);
                              },
                          .parameters = {parameters.begin(), parameters.end()},
                          .optimizer = &optimizer},
                         {.step_metrics = {accuracy}, .distribute = kWholeDataset});
  logging::debug("the data is loaded, the model made");

  Results results{options.strategy, strategy.num_replicas_in_sync(), {}, 0};
  Report report(plan, model, options.epochs, batches.cardinality().count(), results);
  trainer.fit(batches,
              {.epochs = options.epochs, .callbacks = {report}, .checkpoint = checkpoint_of(options)});
  if (results.epochs.empty()) plan.after_epoch(model, options.epochs);  // there was nothing left to train
  results.test_accuracy = test_accuracy(options, strategy, model, digits);
  return results;
}

}  // namespace digits
