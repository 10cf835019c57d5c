// Several devices of one process: each replica has its own copy of the variables, works on its share of every
// batch, and all copies take the same step. The metric is a variable, too: each replica adds to its own part,
// and a read sums the parts.
//
// Learns on which side of the line x + 2 y = 1 a point lies, by logistic regression.
#include <cmath>
#include <cstdio>
#include <vector>

#include <cohort/cohort.h>

#include "../page.h"

namespace {

using namespace cohort;

struct Examples {
  Tensor points;  ///< [rows, 2]
  Tensor labels;  ///< [rows], 0 or 1
};
COHORT_FIELDS(Examples, points, labels)

/// A grid over the square from -2 to 2, without the points that are hard to tell.
Examples grid() {
  std::vector<double> points;
  std::vector<double> labels;
  for (int row = 0; row < 40; ++row) {
    for (int column = 0; column < 40; ++column) {
      const double x = -2 + 0.1 * column;
      const double y = -2 + 0.1 * row;
      const double side = x + 2 * y - 1;
      if (std::abs(side) < 0.25) continue;
      points.insert(points.end(), {x, y});
      labels.push_back(side > 0 ? 1 : 0);
    }
  }
  const auto rows = static_cast<std::int64_t>(labels.size());
  return {Tensor::from(std::span<const double>(points), {rows, 2}),
          Tensor::from(std::span<const double>(labels), {rows})};
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status =
          end_at_arguments(argc, argv, "mirrored: logistic regression on four devices of this process"))
    return *status;
  constexpr std::int64_t kBatch = 100;
  const MirroredStrategy strategy(cpu_devices(4));
  const auto batches = Dataset<Examples>::from_tensor_slices(grid()).shuffle({.seed = 1}).batch(kBatch);

  const auto scope = strategy.scope();
  const Variable weights({.shape = {3}, .dtype = DType::kFloat64, .name = "weights"});
  const Variable correct({.dtype = DType::kInt64,
                          .name = "correct",
                          .synchronization = VariableSynchronization::kOnRead,
                          .aggregation = VariableAggregation::kSum});
  Momentum optimizer({.learning_rate = 0.5, .momentum = 0.9});

  const auto train_step = [&](const Examples& mine) {
    const Tensor own = weights.read();
    const auto w = own.span<double>();
    const Tensor gradient = Tensor::zeros({3}, DType::kFloat64);
    const auto g = gradient.span<double>();
    std::int64_t right = 0;
    for (std::int64_t row = 0; row < mine.labels.shape()[0]; ++row) {
      const Tensor point = mine.points.row(row);
      const auto at = point.span<double>();
      const double label = mine.labels.span<double>()[static_cast<std::size_t>(row)];
      const double probability = 1 / (1 + std::exp(-(w[0] + w[1] * at[0] + w[2] * at[1])));
      right += (probability > 0.5) == (label > 0.5);
      const double error = (probability - label) / kBatch;
      g[0] += error;
      g[1] += error * at[0];
      g[2] += error * at[1];
    }
    optimizer.apply_gradients({{gradient, weights}});
    correct.assign_add(right);
  };

  // Made once: each pass over it is shuffled anew.
  const auto distributed = strategy.distribute_dataset(batches);
  std::int64_t rows = 0;
  for (int epoch = 0; epoch < 20; ++epoch) {
    correct.assign(0);
    rows = 0;
    for (const auto& batch : distributed) {
      strategy.run(train_step, batch);
      for (const Examples& part : batch.components()) rows += part.labels.shape()[0];
    }
  }
  const Tensor line = weights.read();
  std::printf("%d replicas, %d of %d right, line %+.1f y = %+.1f\n", strategy.num_replicas_in_sync(),
              static_cast<int>(correct.read().item<std::int64_t>()), static_cast<int>(rows),
              line.span<double>()[2] / line.span<double>()[1],
              -line.span<double>()[0] / line.span<double>()[1]);
}
