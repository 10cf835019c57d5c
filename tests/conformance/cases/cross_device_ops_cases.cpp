// What a strategy reduces with: values as their components, one per local replica, to destinations.
#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class CrossDeviceOpsCase : public Replicas {
 protected:
  [[nodiscard]] CrossDeviceOps& ops() const { return strategy_.extended().cross_device_ops(); }
  [[nodiscard]] Destinations everywhere() const { return strategy_.extended().destinations(); }

  /// `value(r)` of this process's replicas, on their devices.
  [[nodiscard]] Components components(const std::function<Tensor(int r)>& value) const {
    Components all;
    for_each_local(strategy_.run([&](ReplicaContext& replica) {
      return value(replica.replica_id_in_sync_group()).to(replica.device());
    }),
                   [&](int, const Tensor& tensor) { all.emplace_back(tensor); });
    return all;
  }

  /// Expects `wanted` on every local replica's device.
  void expect_everywhere(const Components& results, const std::vector<double>& wanted) const {
    ASSERT_THAT(results, SizeIs(local_replicas()));
    for (int local = 0; local < local_replicas(); ++local) {
      const Tensor& result = values_of(results[static_cast<std::size_t>(local)]);
      EXPECT_EQ(result.device(), strategy_.extended().device(local));
      EXPECT_THAT(numbers(result), ::testing::Pointwise(DoubleEq(), wanted));
    }
  }
};
COHORT_INSTANTIATE_CASES(CrossDeviceOpsCase);

TEST_P(CrossDeviceOpsCase, Case068_ReducesDenseValues) {
  const Components value = components([](int r) { return Tensor::from({r + 1.0, 10.0}); });
  const double sum = total([](int r) { return r + 1; });
  for (const auto implementation : {CommunicationImplementation::kAuto, CommunicationImplementation::kRing}) {
    const CommunicationOptions options{.implementation = implementation};
    expect_everywhere(ops().reduce("sum", value, everywhere(), options), {sum, 10.0 * replicas()});
    expect_everywhere(ops().reduce("mean", value, everywhere(), options), {sum / replicas(), 10});
  }
  const Components on_one = ops().reduce("sum", value, "cpu:5");
  ASSERT_THAT(on_one, SizeIs(1));
  EXPECT_EQ(values_of(on_one.front()).device(), Device::cpu(5));
  EXPECT_THAT(numbers(values_of(on_one.front())), ElementsAre(sum, 10 * replicas()));
}

TEST_P(CrossDeviceOpsCase, Case071_ReducesBatches) {
  // Value i of replica r is 2 r + 1 + i, so that of two replicas the first one has 1, 2 and the second 3, 4.
  constexpr int kValues = 5;
  const auto value = [&](int i) {
    return components([i](int r) { return Tensor::full({i + 1}, DType::kFloat64, 2 * r + 1 + i); });
  };
  std::vector<ReduceRequest> requests;
  requests.reserve(kValues);
  for (int i = 0; i < kValues; ++i) requests.push_back({value(i), everywhere()});
  for (const std::size_t bytes_per_pack : {0u, 1u, 40u}) {
    const CommunicationOptions options{.bytes_per_pack = bytes_per_pack};
    const auto sums = ops().batch_reduce("sum", requests, options);
    const auto means = ops().batch_reduce("mean", requests, options);
    ASSERT_THAT(sums, SizeIs(kValues));
    ASSERT_THAT(means, SizeIs(kValues));
    for (std::size_t i = 0; i < kValues; ++i) {
      const double mean = replicas() + static_cast<double>(i);
      expect_everywhere(means[i], std::vector<double>(i + 1, mean));
      expect_everywhere(sums[i], std::vector<double>(i + 1, mean * replicas()));
    }
  }
}

}  // namespace
}  // namespace cohort::testing
