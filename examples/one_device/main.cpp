// Training on one device, the way it is written for many: in a strategy's scope, with a
// step that runs in replicas. With another strategy in its first line the same program
// trains on several devices, or on several workers.
//
// Fits the parabola y = 2 - 3 x + 0.5 x^2 to points, by Adam.
#include <cstdio>
#include <vector>

#include <cohort/cohort.h>

#include "../page.h"

namespace {

using namespace cohort;

struct Points {
  Tensor x;
  Tensor y;
};
COHORT_FIELDS(Points, x, y)

Points parabola(std::int64_t count) {
  Points points{Tensor::uninitialized({count}, DType::kFloat64),
                Tensor::uninitialized({count}, DType::kFloat64)};
  for (std::size_t i = 0; i < points.x.elements(); ++i) {
    const double x = -2 + 4 * static_cast<double>(i) / static_cast<double>(count - 1);
    points.x.span<double>()[i] = x;
    points.y.span<double>()[i] = 2 - 3 * x + 0.5 * x * x;
  }
  return points;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = end_at_arguments(argc, argv, "one_device: fits a parabola on one device, by Adam"))
    return *status;
  constexpr std::int64_t kBatch = 32;
  const OneDeviceStrategy strategy(Device::cpu(0));
  const auto batches = Dataset<Points>::from_tensor_slices(parabola(256)).shuffle({.seed = 1}).batch(kBatch);

  const auto scope = strategy.scope();
  const Variable coefficients({.shape = {3}, .dtype = DType::kFloat64, .name = "coefficients"});
  Adam optimizer({.learning_rate = 0.05});

  // Computes half the squared errors of a batch, and takes a step against their gradient.
  const auto train_step = [&](const Points& mine) {
    const Tensor c = coefficients.read();
    const Tensor gradient = Tensor::zeros({3}, DType::kFloat64);
    double loss = 0;
    for (std::size_t i = 0; i < mine.x.elements(); ++i) {
      const double x = mine.x.span<double>()[i];
      const auto at = c.span<double>();
      const double error = at[0] + at[1] * x + at[2] * x * x - mine.y.span<double>()[i];
      loss += error * error / (2 * kBatch);
      gradient.span<double>()[0] += error / kBatch;
      gradient.span<double>()[1] += error * x / kBatch;
      gradient.span<double>()[2] += error * x * x / kBatch;
    }
    optimizer.apply_gradients({{gradient, coefficients}});
    return loss;
  };

  // Made once: each pass over it is shuffled anew.
  const auto distributed = strategy.distribute_dataset(batches);
  double loss = 0;
  for (int epoch = 0; epoch < 100; ++epoch) {
    loss = 0;
    for (const auto& batch : distributed) loss += strategy.reduce("sum", strategy.run(train_step, batch));
  }
  const Tensor found = coefficients.read();
  std::printf("y = %.2f %+.2f x %+.2f x^2 after %d steps, loss %.4f\n", found.span<double>()[0],
              found.span<double>()[1], found.span<double>()[2], static_cast<int>(optimizer.iterations()),
              loss);
}
