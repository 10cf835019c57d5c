#include "on_servers.h"

#include <chrono>
#include <cstdlib>
#include <optional>
#include <vector>

#include <cohort/cohort.h>
#include <cohort/resolvers/task_cluster_resolver.h>

#include "training.h"

namespace digits {
namespace {

using namespace cohort;

/// Chief and workers, which divide the images.
InputContext share_of(const ParameterServerStrategy& strategy) {
  const ClusterSpec spec = remote::cluster_spec(strategy.place());
  return {.num_input_pipelines = worker_count(spec, strategy.task().type),
          .input_pipeline_id = id_in_cluster(spec, strategy.task())};
}

/// A worker's own images, in an order of its own, for ever.
class WorkerBatches {
 public:
  explicit WorkerBatches(const Dataset<Batch>& batches)
      : batches_(batches.repeat()), next_(batches_.begin()) {}
  WorkerBatches(WorkerBatches&& other) noexcept : WorkerBatches(other.batches_) {}
  Batch next() {
    Batch batch = *next_;
    ++next_;
    return batch;
  }

 private:
  Dataset<Batch> batches_;
  Dataset<Batch>::Iterator next_;
};

WorkerBatches make_batches(const InputContext& worker, const std::string& data, std::int64_t batch,
                           std::uint64_t seed) {
  return WorkerBatches(Dataset<Batch>::from_tensor_slices(load_digits(data).train)
                           .shard({.count = worker.num_input_pipelines, .index = worker.input_pipeline_id})
                           .shuffle({.seed = seed})
                           .batch(batch));
}

Score train_step(const std::vector<Variable>& parameters, double learning_rate, std::int64_t batch,
                 WorkerBatches& batches) {
  const Step step = Mlp(parameters).step(batches.next(), batch);
  Sgd({.learning_rate = learning_rate}).apply_gradients(step.gradients);
  return step.score;
}

/// The chief's part: it schedules the steps of an epoch, and waits for them.
Results coordinate(const Options& options, const ParameterServerStrategy& strategy) {
  const Digits digits = load_digits(options.data);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  auto scope = strategy.scope();
  const Mlp model(options.hidden, seed);
  const auto variables = model.parameters();
  const std::vector<Variable> parameters(variables.begin(), variables.end());

  const ClusterCoordinator coordinator(strategy);
  const auto batches = coordinator.create_per_worker<make_batches>(options.data, options.batch, seed);
  const std::int64_t rows = digits.train.images.shape()[0];
  const std::int64_t steps = (rows + options.batch - 1) / options.batch;
  Results results{options.strategy, strategy.num_replicas_in_sync(), {}, 0};
  Progress progress(true, options.epochs, steps);
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<RemoteValue<Score>> scores;
    for (std::int64_t step = 0; step < steps; ++step)
      scores.push_back(
          coordinator.schedule<train_step>(parameters, options.learning_rate, options.batch, batches));
    Score total;
    std::int64_t done = 0;
    for (const Score& score : coordinator.fetch(scores)) {
      total.loss += score.loss;
      total.correct += score.correct;
      total.rows += score.rows;
      progress.step(epoch + 1, ++done);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const auto count = static_cast<double>(total.rows);
    results.epochs.push_back(
        {epoch + 1, total.loss / count, static_cast<double>(total.correct) / count, seconds.count()});
    progress.end_epoch(results.epochs.back());
  }
  coordinator.join();
  results.test_accuracy = test_accuracy(options, strategy, model, digits);
  return results;
}

}  // namespace

bool is_on_servers(std::string_view strategy) {
  return strategy == "parameter_server" || strategy == "coordinator";
}

int run_on_servers(const Options& options) {
  const TaskClusterResolver cluster;
  const ParameterServerStrategy strategy(
      cluster.place(), {.devices = cpu_devices(options.devices), .staleness = options.staleness});
  const bool coordinates = options.strategy == "coordinator";
  if (strategy.task().type == "ps" || (coordinates && strategy.task().type != "chief"))
    return serve(strategy);
  const bool is_chief = share_of(strategy).input_pipeline_id == 0;
  std::optional<ResultsFile> file;
  if (is_chief && !options.json.empty()) file.emplace(options.json);
  const Results results =
      coordinates
          ? coordinate(options, strategy)
          : train(options, strategy, {.reports = is_chief, .share = share_of(strategy), .after_step = [&] {
                                        strategy.end_step();
                                      }});
  if (is_chief) {
    print(results);
    if (file) file->write(results);
  }
  return EXIT_SUCCESS;
}

}  // namespace digits
