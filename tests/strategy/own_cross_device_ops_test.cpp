// A strategy with cross-device operations of the program's own uses them for everything.
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/reduction_to_one_device.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Reduces to one device, and counts the values.
class Counting final : public CrossDeviceOps {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "Counting"; }
  int values = 0;
  CommunicationOptions options;

 private:
  Components reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                   const CommunicationOptions& given) override {
    ++values;
    options = given;
    return ops_.reduce(op, request.value, request.destinations, given);
  }
  ReductionToOneDevice ops_;
};

class OwnCrossDeviceOps : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int replicas() { return GetParam(); }
  const std::shared_ptr<Counting> ops_ = std::make_shared<Counting>();
  const MirroredStrategy strategy_{cpu_devices(GetParam()), kPatient, ops_};
};
INSTANTIATE_TEST_SUITE_P(Replicas, OwnCrossDeviceOps, ::testing::Values(2, 3, 4));

TEST_P(OwnCrossDeviceOps, ReduceInCrossReplicaContext) {
  EXPECT_EQ(strategy_.extended().cross_device_ops().name(), "Counting");
  const auto values = per_replica(strategy_, [](int id) { return Tensor::from({id + 1.0}); });
  EXPECT_THAT(numbers(strategy_.reduce("sum", values)), ElementsAre(sum_to(replicas())));
  EXPECT_EQ(ops_->values, 1);
  static_cast<void>(strategy_.extended().reduce_to("mean", values, values, {.bytes_per_pack = 7}));
  EXPECT_EQ(ops_->values, 2);
  EXPECT_EQ(ops_->options.bytes_per_pack, 7);
  EXPECT_EQ(strategy_.reduce("mean", values, 0).item<double>(), (replicas() + 1) / 2.0);
  EXPECT_EQ(ops_->values, 4) << "sums and counts";
}

TEST_P(OwnCrossDeviceOps, ReduceInsideOfReplicas) {
  const auto results = strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    Tensor in_place = Tensor::full({1}, DType::kFloat32, id + 1);
    replica.all_reduce_in_place("sum", {{in_place}});
    const auto sums =
        replica.all_reduce("sum", std::pair(id + 1.0, Tensor::from({id, 1})), {.timeout_seconds = 9});
    EXPECT_EQ(sums.first, sum_to(replicas()));
    EXPECT_THAT(numbers(sums.second), ElementsAre(sum_to(replicas() - 1), replicas()));
    return in_place;
  });
  for (const Tensor& sum : results.components()) EXPECT_EQ(sum.item<int>(), sum_to(replicas()));
  EXPECT_EQ(ops_->values, 3);
  EXPECT_EQ(ops_->options.timeout_seconds, 9);
}

TEST_P(OwnCrossDeviceOps, AreNotGivenWhatDiffers) {
  EXPECT_THAT(
      [&] {
        strategy_.run([](ReplicaContext& replica) {
          const bool first = replica.replica_id_in_sync_group() == 0;
          return replica.all_reduce(first ? ReduceOp::kSum : ReduceOp::kMean, 1.0);
        });
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("sum"), HasSubstr("mean"))));
  EXPECT_THAT(
      [&] {
        strategy_.run([](ReplicaContext& replica) {
          return replica.all_reduce("sum",
                                    std::vector<double>(replica.replica_id_in_sync_group() == 0 ? 1 : 2));
        });
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("replicas meet in different calls: replica 1 (worker 0, ")));
  EXPECT_THAT(
      [&] {
        strategy_.run([](ReplicaContext& replica) {
          const std::size_t count = replica.replica_id_in_sync_group() == 0 ? 2 : 1;
          replica.all_reduce_in_place("sum", std::vector<Tensor>(count, Tensor::from({1.0})));
        });
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("replicas meet in different calls: replica 1 (worker 0, ")));
  EXPECT_EQ(ops_->values, 0);
}

/// Forgets the last of its results.
class Forgetful final : public CrossDeviceOps {
 public:
  explicit Forgetful(bool of_batch) : of_batch_(of_batch) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "Forgetful"; }

 private:
  Components reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                   const CommunicationOptions& options) override {
    Components result = ops_.reduce(op, request.value, request.destinations, options);
    if (!of_batch_) result.pop_back();
    return result;
  }
  std::vector<Components> batch_reduce_implementation(ReduceOp op, std::span<const ReduceRequest> requests,
                                                      const CommunicationOptions& options) override {
    auto results = CrossDeviceOps::batch_reduce_implementation(op, requests, options);
    if (of_batch_) results.pop_back();
    return results;
  }
  bool of_batch_;
  ReductionToOneDevice ops_;
};

TEST_P(OwnCrossDeviceOps, MustReturnAsManyResultsAsThereAreRequestsAndDestinations) {
  for (const bool of_batch : {true, false}) {
    const MirroredStrategy strategy(cpu_devices(replicas()), kPatient, std::make_shared<Forgetful>(of_batch));
    const auto values = per_replica(strategy, [](int id) { return Tensor::from({id}); });
    EXPECT_THAT([&] { static_cast<void>(strategy.extended().reduce_to("sum", values, values)); },
                ThrowsMessage<InvalidArgument>(HasSubstr("Forgetful returned ")));
  }
}

TEST(OwnCrossDeviceOpsOfNone, AreCollectives) {
  EXPECT_EQ(mirrored(2).extended().cross_device_ops().name(), "CollectiveAllReduce");
}

}  // namespace
}  // namespace cohort::testing
