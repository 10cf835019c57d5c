// Which context a thread is in: outside any scope, inside scope(), run() and merge_call().
#include <optional>
#include <thread>

#include <gmock/gmock.h>

#include <cohort/strategy/one_device_strategy.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void expect_default_context() {
  EXPECT_TRUE(get_strategy().extended().is_default());
  EXPECT_FALSE(has_strategy());
  EXPECT_FALSE(in_cross_replica_context());
  ASSERT_NE(get_replica_context(), nullptr);
  EXPECT_EQ(get_replica_context()->replica_id_in_sync_group(), 0);
  EXPECT_EQ(get_replica_context()->num_replicas_in_sync(), 1);
}

void expect_cross_replica_context(const Strategy& strategy) {
  EXPECT_EQ(get_strategy(), strategy);
  EXPECT_TRUE(has_strategy());
  EXPECT_TRUE(in_cross_replica_context());
  EXPECT_EQ(get_replica_context(), nullptr);
}

void expect_replica_context(const Strategy& strategy, const ReplicaContext& replica) {
  EXPECT_EQ(get_strategy(), strategy);
  EXPECT_TRUE(has_strategy());
  EXPECT_FALSE(in_cross_replica_context());
  EXPECT_EQ(get_replica_context(), &replica);
  EXPECT_EQ(replica.strategy(), strategy);
}

class Contexts : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(Contexts);

TEST_P(Contexts, FollowScopeRunAndMerge) {
  expect_default_context();
  {
    const auto scope = strategy_.scope();
    expect_cross_replica_context(strategy_);
    strategy_.run([&](ReplicaContext& replica) {
      expect_replica_context(strategy_, replica);
      replica.merge_call([&](const Strategy& merging) {
        EXPECT_EQ(merging, strategy_);
        expect_cross_replica_context(strategy_);
      });
      expect_replica_context(strategy_, replica);
    });
    expect_cross_replica_context(strategy_);
  }
  expect_default_context();
}

TEST_P(Contexts, OfRunNeedNoScope) {
  strategy_.run([&](ReplicaContext& replica) { expect_replica_context(strategy_, replica); });
  expect_default_context();
}

TEST_P(Contexts, BelongToTheirThread) {
  const auto scope = strategy_.scope();
  std::thread(expect_default_context).join();
  strategy_.run([&] { std::thread(expect_default_context).join(); });
}

TEST_P(Contexts, AreRestoredAfterAnException) {
  EXPECT_THROW(strategy_.run([] { throw std::logic_error("step"); }), std::logic_error);
  expect_default_context();
  const auto scope = strategy_.scope();
  EXPECT_THROW(strategy_.run([](ReplicaContext& replica) {
    replica.merge_call([](const Strategy&) { throw std::logic_error("merge"); });
  }),
               std::logic_error);
  expect_cross_replica_context(strategy_);
}

TEST_P(Contexts, KnowTheNumberOfReplicas) {
  strategy_.run([&](ReplicaContext& replica) { EXPECT_EQ(replica.num_replicas_in_sync(), replicas()); });
  EXPECT_EQ(strategy_.num_replicas_in_sync(), replicas());
}

class Scopes : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(Scopes);

TEST_P(Scopes, MayBeEnteredAgain) {
  const auto outer = strategy_.scope();
  {
    const auto inner = strategy_.scope();
    expect_cross_replica_context(strategy_);
  }
  expect_cross_replica_context(strategy_);
}

TEST_P(Scopes, MayBeEnteredAgainInAMerge) {
  strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](const Strategy& merging) {
      const auto scope = merging.scope();
      expect_cross_replica_context(strategy_);
    });
  });
}

TEST_P(Scopes, AreNotForReplicas) {
  EXPECT_THAT([&] { strategy_.run([&] { auto scope = strategy_.scope(); }); },
              ThrowsMessage<WrongContext>(
                  AllOf(HasSubstr("scope needs a cross-replica context"), HasSubstr("merge_call"))));
}

TEST_P(Scopes, OfDifferentStrategiesDoNotMix) {
  const OneDeviceStrategy other;
  const auto mixed = ThrowsMessage<WrongContext>(AllOf(
      HasSubstr("mixing different strategies"), HasSubstr("of OneDeviceStrategy while MirroredStrategy")));
  const auto scope = strategy_.scope();
  EXPECT_THAT([&] { auto inner = other.scope(); }, mixed);
  EXPECT_THAT([&] { other.run([] {}); }, mixed);
  EXPECT_THAT([&] { return other.reduce(ReduceOp::kSum, 1.0); }, mixed);
  EXPECT_THAT([&] { return other.gather(PerReplica(std::vector<Tensor>{Tensor()}), 0); }, mixed);
  EXPECT_THAT([&] { return other.reduce(ReduceOp::kSum, PerReplica(std::vector<Tensor>{Tensor()}), 0); },
              mixed);
  expect_cross_replica_context(strategy_);
}

TEST_P(Scopes, OfDifferentStrategiesDoNotMixInAMerge) {
  const MirroredStrategy other = mirrored(replicas());
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          replica.merge_call([&](const Strategy&) { auto scope = other.scope(); });
        });
      },
      ThrowsMessage<WrongContext>(HasSubstr("mixing different strategies")))
      << "also of the same kind";
}

TEST_P(Scopes, OfTheDefaultStrategyDoNotNestInOthers) {
  const Strategy standard = get_strategy();
  const auto scope = strategy_.scope();
  EXPECT_THAT([&] { auto inner = standard.scope(); },
              ThrowsMessage<WrongContext>(HasSubstr("must not nest inside the scope of MirroredStrategy")));
}

TEST(Scopes, MayBeOpenedLaterOrNotAtAll) {
  const MirroredStrategy strategy(cpu_devices(2));
  for (const bool opens : {false, true}) {
    std::optional<StrategyScope> scope;
    if (opens) scope.emplace(strategy);
    EXPECT_EQ(has_strategy(), opens);
    EXPECT_EQ(get_strategy() == strategy, opens);
  }
  EXPECT_FALSE(has_strategy());
}

TEST(Scopes, KeepTheirStrategyAlive) {
  const auto scope = mirrored(2).scope();
  EXPECT_EQ(get_strategy().num_replicas_in_sync(), 2);
}

/// Tests leave no strategy behind.
class SetStrategy : public WithReplicas {
 protected:
  void TearDown() override { set_strategy(std::nullopt); }
};
COHORT_INSTANTIATE_REPLICAS(SetStrategy);

TEST_P(SetStrategy, LastsUntilTheNext) {
  set_strategy(strategy_);
  expect_cross_replica_context(strategy_);
  const Variable variable({.name = "v"});
  EXPECT_TRUE(strategy_.extended().variable_created_in_scope(variable));
  strategy_.run([&](ReplicaContext& replica) { expect_replica_context(strategy_, replica); });
  {
    const auto scope = strategy_.scope();
    expect_cross_replica_context(strategy_);
  }
  const MirroredStrategy other = mirrored(replicas());
  EXPECT_THAT([&] { auto scope = other.scope(); },
              ThrowsMessage<WrongContext>(HasSubstr("mixing different strategies")));
  set_strategy(other);
  expect_cross_replica_context(other);
  set_strategy(std::nullopt);
  expect_default_context();
}

TEST_P(SetStrategy, TakesTheDefaultOneForNone) {
  const Strategy standard = get_strategy();
  set_strategy(strategy_);
  set_strategy(standard);
  expect_default_context();
}

TEST_P(SetStrategy, BelongsToItsThread) {
  set_strategy(strategy_);
  std::thread(expect_default_context).join();
  std::thread([&] { set_strategy(mirrored(replicas())); }).join();
  expect_cross_replica_context(strategy_);
}

class OnlyCrossReplica : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(OnlyCrossReplica);

TEST_P(OnlyCrossReplica, AreRunReduceAndGather) {
  const auto refused = [&](auto function) {
    EXPECT_THAT([&] { strategy_.run(function); },
                ThrowsMessage<WrongContext>(AllOf(HasSubstr("needs a cross-replica context"),
                                                  HasSubstr("inside a replica function"),
                                                  HasSubstr("all_reduce and all_gather"))));
  };
  const PerReplica values(std::vector<Tensor>(static_cast<std::size_t>(replicas()), Tensor()));
  refused([&] { strategy_.run([] {}); });
  refused([&] { static_cast<void>(strategy_.reduce(ReduceOp::kSum, values)); });
  refused([&] { static_cast<void>(strategy_.reduce(ReduceOp::kSum, values, 0)); });
  refused([&] { static_cast<void>(strategy_.gather(values, 0)); });
}

}  // namespace
}  // namespace cohort::testing
