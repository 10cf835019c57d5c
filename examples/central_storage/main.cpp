// One copy of the parameters for several replicas. Each reads the same slope and computes the gradient of its
// share of the points; their updates are summed first and applied once. With MirroredStrategy, every replica
// would have a copy of its own.
//
// Fits y = 3 x to points that are divided among three replicas.
#include <cstdio>

#include <cohort/cohort.h>

#include "../page.h"

int main(int argc, char** argv) {
  if (const auto status = end_at_arguments(
          argc, argv, "central_storage: fits a line with one copy of the slope for three replicas"))
    return *status;
  using namespace cohort;
  const CentralStorageStrategy strategy(cpu_devices(3));
  const auto scope = strategy.scope();
  const Variable slope({.dtype = DType::kFloat64, .name = "slope", .aggregation = VariableAggregation::kSum});

  // The shares may differ in size.
  const auto points = strategy.distribute_values_from_function([](const ValueContext& context) {
    Tensor xs = Tensor::uninitialized({10 + context.replica_id_in_sync_group}, DType::kFloat64);
    double x = 0;
    for (double& value : xs.span<double>()) value = x += 0.1;
    return xs;
  });
  const double count = strategy.reduce(
      "sum", strategy.run([](const Tensor& xs) { return static_cast<double>(xs.elements()); }, points));

  for (int step = 0; step < 200; ++step) {
    strategy.run(
        [&](const Tensor& xs) {
          const auto now = slope.read().item<double>();
          double gradient = 0;
          for (const double x : xs.span<double>()) gradient += 2 * (now * x - 3 * x) * x / count;
          slope.assign_sub(0.5 * gradient);
        },
        points);
  }
  std::printf("slope %.3f from %.0f points, %zu copy on %s\n", slope.read().item<double>(), count,
              slope.components().size(), to_string(slope.components()[0].device()).c_str());
}
