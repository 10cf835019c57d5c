// Trains a network of libtorch on images of handwritten digits, with libtorch's own optimizer, over all
// ranks:
//
//     mpirun -n 2 torch_distributed
//
// Each rank computes with its share of every batch; the DistributedModel makes gradients the mean of all.
#include <cstdio>
#include <filesystem>

#include <torch/torch.h>

#include <cohort/mpi/session.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/torch/distributed_model.h>
#include <cohort/torch/tensor.h>

#include "../digits/digits_data.h"
#include "../page.h"

constexpr int kEpochs = 8;
constexpr std::int64_t kBatch = 60;  ///< images in a step; whatever is left over in an epoch is not used

int main(int argc, char** argv) {
  if (const auto status = end_at_arguments(argc, argv, "torch_distributed: trains with a DistributedModel"))
    return *status;
  cohort::mpi::Session session(argc, argv);
  const cohort::MultiWorkerMirroredStrategy strategy(session);
  torch::set_num_threads(1);  // ranks share the cores
  torch::manual_seed(1);

  // The build puts the data beside the programs.
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const digits::Digits digits = digits::load_digits(folder / "data" / "digits.csv");
  const auto images_of = [](const digits::Batch& batch) { return cohort::libtorch::to_torch(batch.images); };
  const auto labels_of = [](const digits::Batch& batch) {
    return cohort::libtorch::to_torch(batch.labels).to(torch::kLong);
  };
  const torch::Tensor images = images_of(digits.train);
  const torch::Tensor labels = labels_of(digits.train);
  torch::nn::Sequential net(torch::nn::Linear(digits::kPixels, 32), torch::nn::Tanh(),
                            torch::nn::Linear(32, digits::kClasses));
  cohort::libtorch::DistributedModel model(net, strategy);
  torch::optim::Adam optimizer(net->parameters(), 0.01);

  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    const torch::Tensor order = torch::randperm(images.size(0), torch::kLong);  // the same on all ranks
    for (std::int64_t begin = 0; begin + kBatch <= images.size(0); begin += kBatch) {
      const torch::Tensor mine =
          order.slice(0, begin + session.rank(), begin + kBatch, strategy.num_replicas_in_sync());
      optimizer.zero_grad();
      model.backward(at::cross_entropy_loss(net->forward(images.index({mine})), labels.index({mine})));
      optimizer.step();
    }
    const torch::NoGradGuard no_gradients;
    const torch::Tensor outputs = net->forward(images_of(digits.test));
    const auto loss = at::cross_entropy_loss(outputs, labels_of(digits.test)).item<double>();
    const auto right = (outputs.argmax(1) == labels_of(digits.test)).to(torch::kDouble).mean().item<double>();
    if (session.is_chief()) std::printf("epoch %d  test loss %.6f  right %.4f\n", epoch, loss, right);
  }
}
