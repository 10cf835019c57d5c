// A model that is spread over the devices of each replica: a replica owns two logical devices here, and each
// of them holds half of the weights and works on half of the features. Between replicas, the halves are kept
// equal like any variable.
//
// Fits y = w . x with 8 weights; x and y are divided among two replicas.
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include <cohort/cohort.h>

#include "../page.h"

namespace {

using namespace cohort;

constexpr std::int64_t kFeatures = 8;
constexpr std::int64_t kRows = 64;

struct Examples {
  Tensor x;  ///< [rows, features]
  Tensor y;  ///< [rows]
};
COHORT_FIELDS(Examples, x, y)

/// The weights to find are 1, 2, ..., 8.
Examples examples() {
  Examples all{Tensor::zeros({kRows, kFeatures}, DType::kFloat64), Tensor::zeros({kRows}, DType::kFloat64)};
  auto x = all.x.span<double>().begin();
  for (int row = 1; double& y : all.y.span<double>()) {
    for (int feature = 1; feature <= kFeatures; ++feature, ++x) {
      *x = std::sin(row * feature);
      y += feature * *x;
    }
    ++row;
  }
  return all;
}

/// sums[row] += x[row] . w
void add_products(const Tensor& x, const Tensor& w, std::vector<double>& sums) {
  for (std::size_t i = 0; i < x.elements(); ++i)
    sums[i / w.elements()] += x.span<double>()[i] * w.span<double>()[i % w.elements()];
}

/// d loss / d w for the errors of the rows.
Tensor gradient_of(const Tensor& x, const std::vector<double>& errors) {
  Tensor gradient = Tensor::zeros({x.shape()[1]}, DType::kFloat64);
  for (std::size_t i = 0; i < x.elements(); ++i)
    gradient.span<double>()[i % gradient.elements()] +=
        errors[i / gradient.elements()] * x.span<double>()[i] / kRows;
  return gradient;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = end_at_arguments(
          argc, argv, "logical_devices: a model that is spread over two devices of each of two replicas"))
    return *status;
  // Four devices: replica 0 owns cpu:0 and cpu:1, replica 1 owns cpu:2 and cpu:3.
  const LogicalDeviceStrategy strategy(
      DeviceAssignment::build(cpu_topology({2, 2}), {.computation_shape = {1, 2}, .num_replicas = 2}));
  const auto batches = Dataset<Examples>::from_tensor_slices(examples()).batch(kRows);

  const auto scope = strategy.scope();
  std::vector<Variable> halves;
  for (int device = 0; device < 2; ++device) {
    const auto here = strategy.logical_device(device);
    halves.emplace_back(VariableOptions{.shape = {kFeatures / 2}, .dtype = DType::kFloat64, .name = "half"});
  }
  Sgd optimizer({.learning_rate = 0.5});

  const auto train_step = [&](const Examples& mine) {
    constexpr std::array kColumns{1, 2};  // one part of the rows, two of the features
    const std::vector<Tensor> parts = strategy.split_to_logical_devices(mine.x, kColumns);
    std::vector<double> errors(mine.y.elements(), 0.0);
    for (std::size_t device = 0; device < 2; ++device)
      add_products(parts[device], halves[device].read(), errors);
    for (std::size_t row = 0; row < errors.size(); ++row) errors[row] -= mine.y.span<double>()[row];
    optimizer.apply_gradients(
        {{gradient_of(parts[0], errors), halves[0]}, {gradient_of(parts[1], errors), halves[1]}});
  };

  for (int step = 0; step < 200; ++step) {
    for (const auto& batch : strategy.distribute_dataset(batches)) strategy.run(train_step, batch);
  }
  for (const Variable& half : halves) {
    for (const Tensor& component : half.components())
      std::printf("%s ", to_string(component.device()).c_str());
    const Tensor found = half.read();
    for (const double weight : found.span<double>()) std::printf("%.2f ", weight);
  }
  std::printf("\n");
}
