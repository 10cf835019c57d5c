// Code that chose no strategy: one replica, on the calling thread.
#include <thread>

#include <gmock/gmock.h>

#include <cohort/value/variable.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(DefaultStrategy, IsTheSameEverywhere) {
  Strategy elsewhere = get_strategy();
  std::thread([&] { elsewhere = get_strategy(); }).join();
  EXPECT_EQ(elsewhere, get_strategy());
  EXPECT_EQ(get_strategy().num_replicas_in_sync(), 1);
}

TEST(DefaultStrategy, HasAScopeThatChangesNothing) {
  const auto scope = get_strategy().scope();
  EXPECT_FALSE(has_strategy());
  EXPECT_FALSE(in_cross_replica_context());
  const auto inner = mirrored(2).scope();
  EXPECT_TRUE(has_strategy());
}

TEST(DefaultStrategy, RunsOnTheCallingThreadInTheSameContext) {
  const auto ids = get_strategy().run(
      [](ReplicaContext& replica, int argument) {
        EXPECT_EQ(replica.replica_id_in_sync_group(), 0);
        EXPECT_EQ(argument, 5);
        EXPECT_EQ(get_replica_context(), &replica);
        EXPECT_FALSE(has_strategy());
        return std::this_thread::get_id();
      },
      PerReplica(std::vector{5}));
  EXPECT_THAT(ids.components(), ElementsAre(std::this_thread::get_id()));
}

TEST(DefaultStrategy, ReducesAValueToItself) {
  const Strategy strategy = get_strategy();
  const Tensor vector = Tensor::from({1.0f, 2.0f});
  EXPECT_THAT(numbers(strategy.reduce(ReduceOp::kSum, vector)), ElementsAre(1, 2));
  EXPECT_THAT(numbers(strategy.reduce(ReduceOp::kMean, vector)), ElementsAre(1, 2));
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, 3.0), 3.0);
}

TEST(DefaultStrategy, StillReducesAlongAnAxis) {
  const PerReplica vector(std::vector{Tensor::from({1.0f, 2.0f, 6.0f})});
  EXPECT_EQ(get_strategy().reduce(ReduceOp::kSum, vector, 0).item<float>(), 9);
  EXPECT_EQ(get_strategy().reduce(ReduceOp::kMean, vector, 0).item<float>(), 3);
}

TEST(DefaultStrategy, GathersAValueToItself) {
  const Tensor vector = Tensor::from({1.0f, 2.0f});
  EXPECT_THAT(numbers(get_strategy().gather(PerReplica(std::vector{vector}), 0)), ElementsAre(1, 2));
}

TEST(DefaultReplica, MergesAlone) {
  const int merged = get_replica_context()->merge_call(
      [](const Strategy& strategy, const PerReplica<int>& argument) {
        EXPECT_TRUE(strategy.extended().is_default());
        EXPECT_FALSE(has_strategy());
        EXPECT_TRUE(in_cross_replica_context());
        EXPECT_EQ(get_replica_context(), nullptr);
        return argument[0] + 1;
      },
      3);
  EXPECT_EQ(merged, 4);
  EXPECT_FALSE(in_cross_replica_context());
}

TEST(DefaultReplica, CommunicatesWithItself) {
  const ReplicaContext& replica = *get_replica_context();
  EXPECT_EQ(replica.all_reduce(ReduceOp::kSum, 3.0), 3.0);
  EXPECT_THAT(numbers(replica.all_gather(Tensor::from({1.0f, 2.0f}), 0)), ElementsAre(1, 2));
}

TEST(DefaultReplica, RunsAgainInsideAMerge) {
  const auto sums = get_strategy().run([](ReplicaContext& replica) {
    return replica.merge_call([](const Strategy& strategy) {
      const auto inner = strategy.run([](ReplicaContext& again) {
        EXPECT_EQ(get_replica_context(), &again);
        EXPECT_FALSE(in_cross_replica_context());
        EXPECT_FALSE(has_strategy());
        return again.merge_call([](const Strategy&) { return 1; }) + again.all_reduce(ReduceOp::kSum, 1.0);
      });
      EXPECT_TRUE(in_cross_replica_context()) << "as before";
      return inner;
    });
  });
  EXPECT_THAT(sums.components(), ElementsAre(2));
}

TEST(DefaultReplica, ServesAllThreadsAtOnce) {
  const auto work = [] {
    for (int round = 0; round < 100; ++round) {
      const ReplicaContext& replica = *get_replica_context();
      EXPECT_EQ(replica.all_reduce(ReduceOp::kMean, 1.0 * round), round);
      EXPECT_EQ(replica.all_gather(Tensor::from({1.0f * static_cast<float>(round)}), 0).item<int>(), round);
      EXPECT_EQ(replica.merge_call([&](const Strategy&) { return round; }), round);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

TEST(DefaultReplica, IsNotCurrentInsideAScope) {
  const ReplicaContext& replica = *get_replica_context();
  const auto scope = mirrored(2).scope();
  EXPECT_THAT([&] { return replica.all_reduce(ReduceOp::kSum, 1.0); },
              ThrowsMessage<WrongContext>(HasSubstr("cross-replica context")));
}

TEST(DefaultStrategy, MakesPlainVariables) {
  const auto scope = get_strategy().scope();
  const Variable variable({.initial_value = Tensor::from({1.0f})});
  EXPECT_EQ(variable.components().size(), 1u);
  get_strategy().run([&] { variable.assign(Tensor::from({2.0f})); });
  EXPECT_EQ(variable.read().item<float>(), 2);
}

TEST(DefaultStrategy, HasChosenNoDevices) {
  const StrategyExtended& extended = get_strategy().extended();
  EXPECT_THAT([&] { return extended.worker_devices(); },
              ThrowsMessage<WrongContext>(HasSubstr("no strategy is active")));
  EXPECT_THROW(static_cast<void>(extended.parameter_devices()), WrongContext);
  EXPECT_TRUE(extended.should_checkpoint());
  EXPECT_TRUE(extended.should_save_summary());
}

TEST(DefaultStrategy, ColocatesVariablesWithAnything) {
  const Variable variable({.name = "v"});
  const auto colocated = get_strategy().extended().colocate_vars_with(variable);
  EXPECT_EQ(Variable({}).components()[0].device(), Device());
  EXPECT_TRUE(get_strategy().extended().variable_created_in_scope(variable));
}

}  // namespace
}  // namespace cohort::testing
