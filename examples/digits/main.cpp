// Trains a small network on handwritten digits, under the strategy named on the command
// line. The training loop below is the same for one replica and for many.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include <fmt/format.h>

#include <cohort/cohort.h>
#include <cohort/mpi/session.h>

#include "digits_data.h"
#include "mlp.h"
#include "options.h"
#include "report.h"
#include "roles.h"

namespace digits {
namespace {

using namespace cohort;

/// Every worker reads all images and keeps its share of each batch.
constexpr DistributeOptions kWholeDataset{.auto_shard_policy = AutoShardPolicy::kData};

Strategy make_strategy(const Options& options, mpi::Session& session, const Roles& roles) {
  if (options.strategy == "multi_worker_mirrored") {
    std::vector<Device> devices = cpu_devices(options.devices);
    if (roles.resolver() != nullptr) return MultiWorkerMirroredStrategy(*roles.resolver(), {}, devices);
    return MultiWorkerMirroredStrategy(session, {}, devices);
  }
  if (session.size() > 1) {
    throw UsageError(
        fmt::format("--strategy {} runs in one process, but this job has {} workers; use --strategy "
                    "multi_worker_mirrored, or start one process",
                    options.strategy, session.size()));
  }
  if (options.strategy == "mirrored") return MirroredStrategy(cpu_devices(options.devices));
  if (options.strategy == "central_storage") return CentralStorageStrategy(cpu_devices(options.devices));
  if (options.strategy == "one_device") return OneDeviceStrategy();
  return get_strategy();
}

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

Results train(const Options& options, const Strategy& strategy, const Roles& roles) {
  const Digits digits = load_digits(options.data);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const auto batches =
      Dataset<Batch>::from_tensor_slices(digits.train).shuffle({.seed = seed}).batch(options.batch);
  const auto test_batches = Dataset<Batch>::from_tensor_slices(digits.test).batch(options.batch);

  auto scope = strategy.scope();
  const Mlp model(options.hidden, seed);
  Sgd optimizer({.learning_rate = options.learning_rate});
  const auto train_step = [&](const Batch& mine) {
    const Step step = model.step(mine, options.batch);
    optimizer.apply_gradients(step.gradients);
    return step.score;
  };

  Results results{options.strategy, strategy.num_replicas_in_sync(), {}, 0};
  const std::int64_t rows = digits.train.images.shape()[0];
  logging::debug("the data is loaded, the model made");
  Progress progress(roles.is_chief(), options.epochs, (rows + options.batch - 1) / options.batch);
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    Score total;
    for (const auto& batch : strategy.distribute_dataset(batches, kWholeDataset)) {
      add(total, strategy.reduce(ReduceOp::kSum, strategy.run(train_step, batch)));
      progress.step();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const auto count = static_cast<double>(total.rows);
    results.epochs.push_back(
        {total.loss / count, static_cast<double>(total.correct) / count, seconds.count()});
    progress.end_epoch(results.epochs.back());
    roles.hand_over(model.parameters());
  }
  results.test_accuracy = test_accuracy(strategy, model, test_batches);
  return results;
}

/// Takes the parameters from the replicas that train, after each epoch.
void evaluate(const Options& options, const Roles& roles) {
  const Digits digits = load_digits(options.data);
  const auto test_batches = Dataset<Batch>::from_tensor_slices(digits.test).batch(options.batch);
  const Mlp model(options.hidden, static_cast<std::uint64_t>(options.seed));
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    roles.hand_over(model.parameters());
    fmt::print("evaluator: epoch {}, test accuracy {:.4f}\n", epoch,
               test_accuracy(get_strategy(), model, test_batches));
  }
}

int run(int argc, char** argv) {
  mpi::Session session(argc, argv);
  try {
    const auto options = parse_options(argc, argv);
    if (!options) {
      if (session.is_chief()) fmt::print("{}", help_text());
      return EXIT_SUCCESS;
    }
    const Roles roles(session, options->roles);
    if (roles.evaluates()) {
      evaluate(*options, roles);
      return EXIT_SUCCESS;
    }
    const Strategy strategy = make_strategy(*options, session, roles);
    std::optional<ResultsFile> file;
    if (roles.is_chief() && !options->json.empty()) file.emplace(options->json);
    const Results results = train(*options, strategy, roles);
    if (roles.is_chief()) {
      fmt::print("{}: {} replica{}, test accuracy {:.4f}\n", results.strategy, results.replicas,
                 results.replicas == 1 ? "" : "s", results.test_accuracy);
      if (file) file->write(results);
    }
    return EXIT_SUCCESS;
  } catch (const UsageError& error) {
    // Every worker got the same command line, so all of them leave here, in good order.
    if (session.is_chief()) fmt::print(stderr, "digits: {}\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  try {
    return digits::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "digits: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
