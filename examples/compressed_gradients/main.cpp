// A program's own cross-device operations: gradients are reduced in bfloat16, which moves half the bytes of
// float32. A strategy takes them at its construction and uses them for every reduction, those of optimizers
// included; the training loop does not change.
//
// Fits y = 3 x - 2 to points that are divided among four replicas.
#include <cstdio>
#include <memory>
#include <vector>

#include <cohort/strategy/collective_all_reduce.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/train/optimizers/sgd.h>

#include "../page.h"

namespace {

using namespace cohort;

class CompressedReduce final : public CrossDeviceOps {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "CompressedReduce"; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  Components reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                   const CommunicationOptions& options) override {
    const DType dtype = values_of(request.value.front()).dtype();
    if (dtype != DType::kFloat32) return ops_.reduce(op, request.value, request.destinations, options);
    Components result =
        ops_.reduce(op, converted(request.value, DType::kBFloat16), request.destinations, options);
    bytes_ += request.value.size() * values_of(result.front()).bytes();
    return converted(result, dtype);
  }

  /// Only values are converted; slices keep their indices.
  static Components converted(const Components& components, DType dtype) {
    Components result;
    for (const TensorOrSlices& component : components)
      result.push_back(with_values(component, values_of(component).cast(dtype)));
    return result;
  }

  CollectiveAllReduce ops_;
  std::size_t bytes_ = 0;
};

/// d/dslope and d/dintercept of the mean squared error over all replicas' points.
std::pair<float, float> gradient(float slope, float intercept, int replica, int replicas) {
  constexpr int kPoints = 8;
  std::pair<float, float> sum{0, 0};
  for (int i = 0; i < kPoints; ++i) {
    const float x = static_cast<float>(replica * kPoints + i) / static_cast<float>(replicas * kPoints);
    const float error = slope * x + intercept - (3 * x - 2);
    sum.first += 2 * error * x / static_cast<float>(replicas * kPoints);
    sum.second += 2 * error / static_cast<float>(replicas * kPoints);
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = end_at_arguments(argc, argv,
                                           "compressed_gradients: reduces gradients in bfloat16 by "
                                           "cross-device operations of the program's own"))
    return *status;
  const auto ops = std::make_shared<CompressedReduce>();
  const MirroredStrategy strategy(cpu_devices(4), {}, ops);
  const auto scope = strategy.scope();
  const Variable slope({.name = "slope"});
  const Variable intercept({.name = "intercept"});
  Sgd optimizer({.learning_rate = 0.5});

  for (int step = 0; step < 500; ++step) {
    strategy.run([&](ReplicaContext& replica) {
      const auto [d_slope, d_intercept] =
          gradient(slope.read().item<float>(), intercept.read().item<float>(),
                   replica.replica_id_in_sync_group(), replica.num_replicas_in_sync());
      optimizer.apply_gradients({{Tensor::scalar(d_slope), slope}, {Tensor::scalar(d_intercept), intercept}});
    });
  }
  std::printf("slope %.2f, intercept %.2f, %zu bytes of gradients\n", slope.read().item<double>(),
              intercept.read().item<double>(), ops->bytes());
}
