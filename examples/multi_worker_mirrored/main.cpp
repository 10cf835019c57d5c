// Many workers, each with one device or several: under mpirun or srun every rank is a
// worker, and all replicas of all workers take each step together.
//
//     mpirun -n 3 multi_worker_mirrored [DEVICES_PER_WORKER]
//
// Finds the centres of three clouds of points by k-means: each replica adds up the points of its share that
// are nearest to each centre, all_reduce sums over all replicas, and every replica moves its copy of the
// centres. No gradients.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include <cohort/cohort.h>
#include <cohort/mpi/session.h>

namespace {

using namespace cohort;

constexpr std::int64_t kClouds = 3;
constexpr std::array<double, 2 * kClouds> kCentres{1, 1, 10, 2, 4, 9};

/// Points on spirals around the centres.
Tensor clouds(int points_each) {
  Tensor points = Tensor::uninitialized({kClouds * points_each, 2}, DType::kFloat64);
  auto next = points.span<double>().begin();
  for (int i = 0; i < points_each; ++i) {
    const double turn = 2.399963 * i;  // the golden angle: no direction is preferred
    const double radius = 2 * std::sqrt(static_cast<double>(i) / points_each);
    for (std::size_t cloud = 0; cloud < kClouds; ++cloud) {
      *next++ = kCentres[2 * cloud] + radius * std::cos(turn);
      *next++ = kCentres[2 * cloud + 1] + radius * std::sin(turn);
    }
  }
  return points;
}

std::size_t nearest(std::span<const double> centres, double x, double y) {
  std::size_t best = 0;
  double least = HUGE_VAL;
  for (std::size_t i = 0; i < kClouds; ++i) {
    const double distance = std::hypot(centres[2 * i] - x, centres[2 * i + 1] - y);
    if (distance < least) {
      least = distance;
      best = i;
    }
  }
  return best;
}

/// Nothing if the argument is not a number of devices.
std::optional<int> devices_per_worker(std::string_view argument) {
  int devices = 0;
  const char* const end = argument.data() + argument.size();
  const auto [stopped, status] = std::from_chars(argument.data(), end, devices);
  if (status != std::errc() || stopped != end || devices < 1) return {};
  return devices;
}

}  // namespace

int main(int argc, char** argv) {
  mpi::Session session(argc, argv);  // this rank is one worker
  const bool help = argc == 2 && std::string_view(argv[1]) == "--help";
  const std::optional<int> devices = devices_per_worker(argc > 1 ? argv[1] : "1");
  if (!devices || argc > 2) {
    if (session.is_chief())
      std::fputs("usage: multi_worker_mirrored [DEVICES_PER_WORKER], 1 or more\n", help ? stdout : stderr);
    return help ? EXIT_SUCCESS : 2;
  }
  const MultiWorkerMirroredStrategy strategy(session, {}, cpu_devices(*devices));
  const auto batches = Dataset<Tensor>::from_tensor_slices(clouds(400)).batch(kClouds * 400);

  const auto scope = strategy.scope();
  // All workers get the chief's initial value.
  const Variable centres(
      {.name = "centres",
       .initial_value =
           Tensor::from(std::span<const double>(std::array<double, 6>{2, 2, 8, 2, 4, 6}), {kClouds, 2})});

  const auto step = [&](ReplicaContext& replica, const Tensor& mine) {
    const Tensor sums = Tensor::zeros({kClouds, 3}, DType::kFloat64);  // of x, of y, and their number
    const Tensor own = centres.read();
    for (std::int64_t row = 0; row < mine.shape()[0]; ++row) {
      const Tensor point = mine.row(row);
      const auto at = point.span<double>();
      const std::size_t cloud = nearest(own.span<double>(), at[0], at[1]);
      const auto sum = sums.span<double>().subspan(3 * cloud, 3);
      sum[0] += at[0];
      sum[1] += at[1];
      sum[2] += 1;
    }
    const Tensor total = replica.all_reduce("sum", sums);
    const Tensor moved = own.clone();
    for (std::size_t i = 0; i < kClouds; ++i) {
      const auto sum = total.span<double>().subspan(3 * i, 3);
      if (sum[2] == 0) continue;
      moved.span<double>()[2 * i] = sum[0] / sum[2];
      moved.span<double>()[2 * i + 1] = sum[1] / sum[2];
    }
    centres.assign(moved);  // all replicas assign the same
  };

  for (int epoch = 0; epoch < 15; ++epoch) {
    // Every worker reads all points, and its replicas take their share of each batch.
    for (const auto& batch :
         strategy.distribute_dataset(batches, {.auto_shard_policy = AutoShardPolicy::kData}))
      strategy.run(step, batch);
  }
  if (!session.is_chief()) return 0;
  std::printf("%d replica%s on %d worker%s, centres", strategy.num_replicas_in_sync(),
              strategy.num_replicas_in_sync() == 1 ? "" : "s", session.size(),
              session.size() == 1 ? "" : "s");
  const Tensor found = centres.read();
  for (std::size_t i = 0; i < kClouds; ++i)
    std::printf(" (%.1f, %.1f)", found.span<double>()[2 * i], found.span<double>()[2 * i + 1]);
  std::printf("\n");
}
