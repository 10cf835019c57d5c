// How strategies are made, and what they refuse.
#include <cstdlib>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "fake_cluster.h"
#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Device kCuda(DeviceKind::kCuda, 0);

TEST(OneDeviceStrategy, HasOneReplicaOnItsDevice) {
  const OneDeviceStrategy strategy(Device::cpu(3));
  EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
  EXPECT_THAT(strategy.extended().worker_devices(), ElementsAre(Device::cpu(3)));
  strategy.run([&](ReplicaContext& replica) {
    EXPECT_EQ(replica.device(), Device::cpu(3));
    EXPECT_EQ(get_strategy(), strategy);
    EXPECT_EQ(replica.all_reduce(ReduceOp::kSum, 2.0), 2.0);
  });
}

TEST(OneDeviceStrategy, NeedsADeviceOfThisBuild) {
  EXPECT_THAT(
      [] { return OneDeviceStrategy(kCuda); },
      ThrowsMessage<Unavailable>(AllOf(HasSubstr("OneDeviceStrategy: device cuda:0"), HasSubstr("no GPU"))));
}

TEST(MirroredStrategyConstructor, TakesItsDevicesInOrder) {
  const MirroredStrategy strategy({Device::cpu(7), Device::cpu(2)});
  EXPECT_EQ(strategy.num_replicas_in_sync(), 2);
  EXPECT_THAT(strategy.extended().worker_devices(), ElementsAre(Device::cpu(7), Device::cpu(2)));
  EXPECT_EQ(strategy.extended().strategy_name(), "MirroredStrategy");
}

TEST(MirroredStrategyConstructor, RefusesADeviceThatIsNamedTwice) {
  EXPECT_THAT(
      [] {
        return MirroredStrategy({Device::cpu(1), Device::cpu(0), Device::parse("/device:CPU:1")});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("device cpu:1 is named twice")));
}

TEST(MirroredStrategyConstructor, RefusesADeviceThatThisBuildLacks) {
  EXPECT_THAT(
      [] {
        return MirroredStrategy({Device::cpu(0), kCuda});
      },
      ThrowsMessage<Unavailable>(HasSubstr("MirroredStrategy: device cuda:0")));
}

TEST(MirroredStrategyConstructor, RefusesAWrongTimeout) {
  for (const double seconds : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT([&] { return MirroredStrategy(cpu_devices(2), {.timeout_seconds = seconds}); },
                ThrowsMessage<InvalidArgument>(HasSubstr("timeout_seconds")));
  }
  EXPECT_NO_THROW(MirroredStrategy(cpu_devices(2), {.timeout_seconds = 0}));
}

TEST(MirroredStrategyConstructor, TakesAllDevicesByDefault) {
  EXPECT_THAT(MirroredStrategy().extended().worker_devices(), ElementsAre(Device::cpu(0)));
}

TEST(MirroredStrategyDeathTest, TakesAsManyDevicesAsTheSettingsSay) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("COHORT_CPU_DEVICES", "3", 1);
        std::exit(MirroredStrategy().num_replicas_in_sync());
      },
      ExitedWithCode(3), "");
}

TEST(StrategyExtendedMake, RefusesAStrategyWithoutDevices) {
  EXPECT_THAT([] { return StrategyExtended::make({.name = "NoStrategy"}); },
              ThrowsMessage<InvalidArgument>("NoStrategy needs at least one device"));
}

const ClusterSpec kTwoWorkers{{"worker", {"n0:1", "n1:1"}}};

auto making(const ClusterResolver& resolver, const std::vector<Device>& devices = {}) {
  return [&resolver, devices] { return MultiWorkerMirroredStrategy(resolver, kPatient, devices); };
}

TEST(MultiWorkerResolver, WithoutAClusterMeansThisProcessAlone) {
  const SimpleClusterResolver alone((ClusterSpec()));
  EXPECT_EQ(making(alone)().num_replicas_in_sync(), 1);
  EXPECT_EQ(making(alone, cpu_devices(3))().num_replicas_in_sync(), 3);
}

TEST(MultiWorkerResolver, MustSayWhichTaskThisIs) {
  const auto incomplete = ThrowsMessage<InvalidArgument>(HasSubstr("must give both task_type and task_id"));
  EXPECT_THAT(making(SimpleClusterResolver(kTwoWorkers)), incomplete);
  EXPECT_THAT(making(SimpleClusterResolver(kTwoWorkers, "worker")), incomplete);
  EXPECT_THAT(making(SimpleClusterResolver(kTwoWorkers, std::nullopt, 0)), incomplete);
}

TEST(MultiWorkerResolver, MustNameATaskOfTheCluster) {
  EXPECT_THAT(making(SimpleClusterResolver(kTwoWorkers, "worker", 2)),
              ThrowsMessage<InvalidArgument>(HasSubstr("'worker' has no task 2")));
  EXPECT_THAT(making(SimpleClusterResolver(kTwoWorkers, "chief", 0)),
              ThrowsMessage<InvalidArgument>(HasSubstr("no job 'chief'")));
}

TEST(MultiWorkerResolver, MustNameATaskThatTrains) {
  const ClusterSpec spec{{"worker", {"n0:1"}}, {"evaluator", {"n1:1"}}, {"ps", {"n2:1"}}};
  for (const char* type : {"evaluator", "ps"}) {
    EXPECT_THAT(
        making(SimpleClusterResolver(spec, type, 0)),
        ThrowsMessage<InvalidArgument>(HasSubstr("task type '" + std::string(type) + "' takes no part")));
  }
}

TEST(MultiWorkerResolver, MustGiveAWayToReachTheOthers) {
  EXPECT_THAT(making(SimpleClusterResolver(kTwoWorkers, "worker", 0)),
              ThrowsMessage<Unavailable>(AllOf(HasSubstr("2 workers"), HasSubstr("mpi::Session"))));
  const ClusterSpec single{{"worker", {"n0:1"}}};
  EXPECT_EQ(making(SimpleClusterResolver(single, "worker", 0))().num_replicas_in_sync(), 1)
      << "there are no others to reach";
}

TEST(MultiWorkerResolver, MustFitTheJob) {
  FakeCluster cluster(3);
  FakeWorker worker(cluster, 0);
  EXPECT_THAT(making(SimpleClusterResolver(kTwoWorkers, "worker", 0, &worker)),
              ThrowsMessage<InvalidArgument>(HasSubstr("describes 2 workers, but the job has 3")));
}

TEST(MultiWorkerResolver, CountsTheChiefAsAWorker) {
  const ClusterSpec spec{{"chief", {"n0:1"}}, {"worker", {"n1:1", "n2:1"}}, {"evaluator", {"n3:1"}}};
  for_each_worker(3, [&](Bootstrap& worker) {
    const SimpleClusterResolver resolver(spec, worker.is_chief() ? "chief" : "worker",
                                         worker.is_chief() ? 0 : worker.rank() - 1, &worker);
    EXPECT_EQ(making(resolver)().num_replicas_in_sync(), 3);
  });
}

}  // namespace
}  // namespace cohort::testing
