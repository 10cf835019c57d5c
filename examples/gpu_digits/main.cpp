// Trains the network of the digits example on GPUs, under the strategy named on the command line: cuBLAS and
// kernels of the program's own on Cohort's streams. It reads from the GPUs only at the end of an epoch: the
// sums of the replicas.
//
//   gpu_digits --strategy mirrored                  all GPUs of this process
//   mpirun -n 4 gpu_digits                          each worker's GPUs: multi_worker_mirrored
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>
#include <fmt/format.h>

#include <cohort/cohort.h>
#include <cohort/cuda/devices.h>
#include <cohort/mpi/session.h>

#include "mlp.h"

namespace gpu_digits {
namespace {

using namespace cohort;
using digits::Batch;

constexpr std::int64_t kBatch = 64;  ///< images per step, shared by all replicas
constexpr std::int64_t kHidden = 128;
constexpr std::uint64_t kSeed = 1;
/// Every worker reads all images and keeps its share of each batch.
constexpr DistributeOptions kWholeDataset{.auto_shard_policy = AutoShardPolicy::kData};

struct Options {
  std::string strategy = "multi_worker_mirrored";
  int epochs = 60;
};

/// Nothing where help was asked for, which `text` has then.
std::optional<Options> parse(int argc, char** argv, std::string& text) {
  namespace po = boost::program_options;
  Options options;
  po::options_description description("gpu_digits: trains on images of digits, on GPUs");
  description.add_options()("help,h", "show this text")(
      "strategy", po::value(&options.strategy)->default_value(options.strategy),
      "one_device, mirrored, multi_worker_mirrored, central_storage or logical_devices")(
      "epochs", po::value(&options.epochs)->default_value(options.epochs), "passes over the training images");
  po::variables_map values;
  po::store(po::command_line_parser(argc, argv).options(description).positional({}).run(), values);
  if (values.contains("help")) {
    text = (std::ostringstream() << description).str();
    return std::nullopt;
  }
  po::notify(values);
  return options;
}

/// Replicas own two GPUs each, one per layer, if the number of GPUs is even; otherwise one.
LogicalDeviceStrategy make_logical_device_strategy() {
  const std::vector<Device> gpus = cuda::devices();
  const std::size_t each = gpus.size() % 2 == 0 ? 2 : 1;
  std::vector<std::vector<Device>> replicas;
  for (std::size_t first = 0; first < gpus.size(); first += each)
    replicas.emplace_back(gpus.begin() + static_cast<std::ptrdiff_t>(first),
                          gpus.begin() + static_cast<std::ptrdiff_t>(first + each));
  return LogicalDeviceStrategy(DeviceAssignment(std::move(replicas)));
}

Strategy make_strategy(const std::string& name, mpi::Session& session) {
  if (name == "multi_worker_mirrored") return MultiWorkerMirroredStrategy(session);
  if (session.size() > 1) throw InvalidArgument("--strategy {} runs in one process; start one", name);
  if (name == "one_device") return OneDeviceStrategy(Device(DeviceKind::kCuda, 0));
  if (name == "mirrored") return MirroredStrategy();
  if (name == "central_storage") return CentralStorageStrategy();
  throw InvalidArgument(
      "--strategy {}: use one_device, mirrored, multi_worker_mirrored, central_storage or logical_devices",
      name);
}

/// What the replicas have added to `score`, per image: the loss, and the share of right answers.
std::pair<double, double> mean_score(const Variable& score, const Batch& images) {
  const auto count = static_cast<double>(images.labels.elements());
  const Tensor sums = score.read().on_host();
  score.assign(Tensor::zeros({2}, DType::kFloat32));
  return {sums.row(0).item<double>() / count, sums.row(1).item<double>() / count};
}

void train(const Options& options, const Strategy& strategy, const LogicalDeviceStrategy* pairs,
           bool is_chief) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "data" / "digits.csv";
  const digits::Digits digits = digits::load_digits(path.string());
  const auto test_batches = Dataset<Batch>::from_tensor_slices(digits.test).batch(kBatch);
  const auto batches =
      Dataset<Batch>::from_tensor_slices(digits.train).shuffle({.seed = kSeed}).batch(kBatch);

  const auto scope = strategy.scope();
  std::mt19937_64 random(kSeed);
  const Layer hidden = make_layer(digits::kPixels, kHidden, random);
  const auto make_output = [&] { return make_layer(kHidden, digits::kClasses, random); };
  const auto on_last_device = [&] {
    const auto last = pairs->logical_device(pairs->device_assignment().logical_devices_per_replica() - 1);
    return make_output();
  };
  const auto replicas = strategy.extended().worker_devices();
  const std::vector<Device> gpus =
      pairs != nullptr ? cuda::devices() : std::vector(replicas.begin(), replicas.end());
  const Mlp model(hidden, pairs != nullptr ? on_last_device() : make_output(), gpus);
  const Variable score({.shape = {2},
                        .name = "score",
                        .synchronization = VariableSynchronization::kOnRead,
                        .aggregation = VariableAggregation::kSum});
  Sgd optimizer({.learning_rate = 0.5});

  const auto train_step = [&](const ReplicaContext& replica, const Batch& mine) {
    const Step step = model.step(mine, kBatch, replica.device());
    optimizer.apply_gradients(step.gradients);
    score.assign_add(step.score);
  };
  const auto test_step = [&](const ReplicaContext& replica, const Batch& mine) {
    score.assign_add(model.evaluate(mine, replica.device()));
  };

  const auto steps = strategy.distribute_dataset(batches, kWholeDataset);
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    for (const auto& batch : steps) strategy.run(train_step, batch);
    const auto [loss, accuracy] = mean_score(score, digits.train);
    if (is_chief)
      fmt::print("epoch {:>3}/{}  loss {:.6f}  accuracy {:.4f}\n", epoch, options.epochs, loss, accuracy);
  }
  for (const auto& batch : strategy.distribute_dataset(test_batches, kWholeDataset))
    strategy.run(test_step, batch);
  const double accuracy = mean_score(score, digits.test).second;
  if (is_chief) {
    const int count = strategy.num_replicas_in_sync();
    fmt::print("{}: {} replica{}, test accuracy {:.4f}\n", options.strategy, count, count == 1 ? "" : "s",
               accuracy);
  }
}

int run(int argc, char** argv) {
  mpi::Session session(argc, argv);
  std::string help;
  const std::optional<Options> parsed = parse(argc, argv, help);
  if (!parsed) {
    if (session.is_chief()) fmt::print("{}", help);
    return EXIT_SUCCESS;
  }
  const Options& options = *parsed;
  for (const std::string& why : session.exchange(cuda::why_no_devices())) {
    if (why.empty()) continue;
    if (session.is_chief()) fmt::print(stderr, "gpu_digits: a worker sees no GPU: {}\n", why);
    return EXIT_FAILURE;
  }
  if (options.strategy == "logical_devices" && session.size() == 1) {
    const LogicalDeviceStrategy strategy = make_logical_device_strategy();
    train(options, strategy, &strategy, true);
  } else {
    train(options, make_strategy(options.strategy, session), nullptr, session.is_chief());
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace gpu_digits

int main(int argc, char** argv) {
  try {
    return gpu_digits::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_digits: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
