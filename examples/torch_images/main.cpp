// Trains a convolutional network of libtorch on images of handwritten digits, over all ranks:
//
//     mpirun -n 4 torch_images
//     mpirun -n 2 torch_images --checkpoint ckpt      # goes on from there when it is started again
//
// However many ranks there are, a step's batch has the same images, and each counts alike: so the losses are
// the same, but for the order in which float32 numbers are summed.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include <ATen/Parallel.h>
#include <boost/program_options.hpp>
#include <fmt/format.h>
#include <torch/torch.h>

#include <cohort/mpi/session.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/torch/model.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/trainer/trainer.h>

#include "../digits/digits_data.h"

namespace {

using namespace cohort;

struct Options {
  // The build puts the data beside the programs.
  std::string data =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "data" / "digits.csv").string();
  int epochs = 10;
  std::int64_t batch = 64;
  std::uint64_t seed = 1;
  std::string checkpoint;
  std::int64_t every = 50;
};

/// None where the command line asked for help. @throws boost::program_options::error for a wrong one.
std::optional<Options> parse(int argc, char** argv) {
  namespace po = boost::program_options;
  Options options;
  po::options_description description("torch_images: trains a convolutional network of libtorch. Options");
  const auto add = [&](const char* name, auto& target, const char* text) {
    description.add_options()(name, po::value(&target)->default_value(target), text);
  };
  add("data", options.data, "CSV with 64 pixels and the digit per line, or the same as .tfrecord");
  add("epochs", options.epochs, "passes over the training images");
  add("batch", options.batch, "images per step, shared by all ranks");
  add("seed", options.seed, "seed of the initial weights and of the order of images");
  add("checkpoint", options.checkpoint, "a folder, which all ranks share, to save in and to go on from");
  add("every", options.every, "steps from one checkpoint to the next");
  description.add_options()("help,h", "show this text");
  po::variables_map values;
  po::store(po::parse_command_line(argc, argv, description), values);
  po::notify(values);
  if (values.count("help") == 0) return options;
  std::cout << description;
  return std::nullopt;
}

/// Prints a line for each epoch.
class Lines : public Callback {
 public:
  void on_epoch_end(int epoch, Logs& logs) override {
    if (!training().reports()) return;
    fmt::print("epoch {:2}", epoch + 1);
    for (const auto& [name, value] : logs) fmt::print("  {} {:.8f}", name, value);
    fmt::print("\n");
  }
};

constexpr std::int64_t kSide = 8;  ///< pixels of an image's side

/// Half as wide and high. All of it is smooth: where a ReLU or a maximum has a kink, a rounding decides on
/// which side an activation lies, and so changes the gradient by more than roundings.
void add_convolution(torch::nn::Sequential& net, std::int64_t inputs, std::int64_t outputs) {
  net->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, 3).padding(1)));
  net->push_back(torch::nn::SiLU());
  net->push_back(torch::nn::AvgPool2d(2));
}

/// Two convolutions, each with a pooling, and a linear layer.
torch::nn::Sequential network(std::uint64_t seed) {
  torch::manual_seed(seed);
  torch::nn::Sequential net(torch::nn::Unflatten(torch::nn::UnflattenOptions(1, {1, kSide, kSide})));
  add_convolution(net, 1, 8);
  add_convolution(net, 8, 16);
  net->push_back(torch::nn::Flatten());
  net->push_back(torch::nn::Linear(16 * kSide / 4 * kSide / 4, digits::kClasses));
  return net;
}

at::Tensor cross_entropies(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels.to(at::kLong), {}, at::Reduction::None);
}

auto dataset(const digits::Batch& digits) {
  return Dataset<std::pair<Tensor, Tensor>>::from_tensor_slices({digits.images, digits.labels});
}

void train(mpi::Session& session, const Options& options) {
  const digits::Digits digits = digits::load_digits(options.data);
  const MultiWorkerMirroredStrategy strategy(session);
  auto scope = strategy.scope();
  libtorch::Model model(network(options.seed), cross_entropies);
  Adam optimizer({.learning_rate = 0.01});
  Trainer trainer(strategy, model, optimizer,
                  {.metrics = {metrics::sparse_categorical_accuracy("accuracy")},
                   .distribute = {.auto_shard_policy = AutoShardPolicy::kData}});
  Lines lines;
  trainer.fit(dataset(digits.train).shuffle({.seed = options.seed}).batch(options.batch),
              {.epochs = options.epochs,
               .validation_data = dataset(digits.test).batch(options.batch),
               .callbacks = {lines},
               .checkpoint = {.folder = options.checkpoint, .manager = {.save_every_steps = options.every}}});
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = parse(argc, argv);
  if (!options) return EXIT_SUCCESS;
  mpi::Session session(argc, argv);
  at::set_num_threads(1);  // ranks share the cores
  train(session, *options);
} catch (const std::exception& error) {
  fmt::print(stderr, "torch_images: {}\n", error.what());
  return EXIT_FAILURE;
}
