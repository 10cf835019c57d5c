// What communication adds to a training step of a DistributedModel: steps in turns with it and without it
// (no_sync), in nets that exposed.py has alike. Prints for the slowest rank, as that does:
//
//     net,ranks,step_ms,alone_ms,exposed_ms
//
//     mpirun -n 2 torch_exposed NET STEPS MODEL.csv     NET: profile or convolutional
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <cohort/mpi/session.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/torch/distributed_model.h>

namespace {

using namespace cohort;

constexpr int kWarmUps = 5;
constexpr std::int64_t kProfileRows = 32;
constexpr std::int64_t kColumns = 64;
constexpr std::int64_t kImages = 32;

/// A chain of layers with the parameters of a profile. Each multiplies 32 rows, as a matrix of 64 columns;
/// small ones are added.
struct ProfileImpl : torch::nn::Module {
  explicit ProfileImpl(const std::string& file) {
    std::ifstream lines(file);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      const std::int64_t elements = std::stoll(line.substr(line.find(',') + 1));
      const bool is_matrix = elements % kColumns == 0 && elements > 4096;
      const std::vector<std::int64_t> shape =
          is_matrix ? std::vector{elements / kColumns, kColumns} : std::vector{elements};
      layers.push_back(
          register_parameter("layer" + std::to_string(layers.size()), 0.01 * torch::randn(shape)));
    }
  }
  torch::Tensor forward(const torch::Tensor& inputs) {
    torch::Tensor sum = torch::zeros({});
    for (const torch::Tensor& layer : layers)
      sum = layer.dim() == 2 ? torch::mm(layer, inputs + sum).mean() : sum + layer.mean();
    return sum;
  }
  std::vector<torch::Tensor> layers;
};
TORCH_MODULE(Profile);

torch::nn::Sequential convolutional() {
  const auto convolution = [](int inputs, int outputs) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, 3).padding(1));
  };
  namespace nn = torch::nn;
  return nn::Sequential(convolution(3, 32), nn::BatchNorm2d(32), nn::ReLU(), nn::MaxPool2d(2),
                        convolution(32, 64), nn::BatchNorm2d(64), nn::ReLU(), nn::MaxPool2d(2),
                        convolution(64, 128), nn::BatchNorm2d(128), nn::ReLU(), nn::Flatten(),
                        nn::Linear(128 * 8 * 8, 128), nn::ReLU(), nn::Linear(128, 10));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Of the slowest rank in each step, in milliseconds.
double median_of_slowest(Communicator& communicator, const std::vector<double>& times) {
  const Tensor slowest = Tensor::from(times);
  communicator.all_reduce(slowest, ReduceOp::kMax);
  const auto all = slowest.span<double>();
  return median({all.begin(), all.end()});
}

/// Of a step, from cleared gradients to reduced ones, after a barrier.
double milliseconds(Communicator& communicator, const std::function<void()>& step) {
  communicator.barrier();
  const auto begin = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void measure(const std::string& name, const std::shared_ptr<torch::nn::Module>& net,
             const std::function<at::Tensor()>& loss, const Strategy& strategy, int steps) {
  libtorch::DistributedModel model(net, strategy);
  const auto step = [&] {
    for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
    model.backward(loss());
  };
  Communicator& communicator = strategy.extended().communicator(0);
  std::vector<double> together;
  std::vector<double> alone;
  for (int i = -kWarmUps; i < steps; ++i) {
    const double with = milliseconds(communicator, step);
    const auto no_sync = model.no_sync();
    const double without = milliseconds(communicator, step);
    if (i < 0) continue;
    together.push_back(with);
    alone.push_back(without);
  }
  const double with = median_of_slowest(communicator, together);
  const double without = median_of_slowest(communicator, alone);
  if (communicator.rank() == 0)
    fmt::print("{},{},{:.3f},{:.3f},{:.3f}\n", name, communicator.size(), with, without, with - without);
}

void measure_profile(const Strategy& strategy, int steps, const std::string& file) {
  Profile net(file);
  const torch::Tensor inputs = torch::randn({kColumns, kProfileRows});
  measure(
      "profile", net.ptr(), [&] { return net->forward(inputs); }, strategy, steps);
}

void measure_convolutional(const Strategy& strategy, int steps) {
  torch::nn::Sequential net = convolutional();
  const torch::Tensor images = torch::randn({kImages, 3, 32, 32});
  const torch::Tensor labels = torch::randint(10, {kImages}, torch::kInt64);
  measure(
      "convolutional", net.ptr(), [&] { return at::cross_entropy_loss(net->forward(images), labels); },
      strategy, steps);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string net = argc == 4 ? argv[1] : "";
  if (argc != 4 || (net != "profile" && net != "convolutional"))
    throw InvalidArgument("write: torch_exposed profile|convolutional STEPS MODEL.csv");
  const int steps = std::stoi(argv[2]);
  mpi::Session session(argc, argv);
  at::set_num_threads(1);
  const MultiWorkerMirroredStrategy strategy(session);
  if (net == "profile")
    measure_profile(strategy, steps, argv[3]);
  else
    measure_convolutional(strategy, steps);
} catch (const std::exception& error) {
  fmt::print(stderr, "torch_exposed: {}\n", error.what());
  return EXIT_FAILURE;
}
