// Which context a thread is in, and a ReplicaContext that is used in another.
#include <barrier>
#include <optional>
#include <thread>

#include <gmock/gmock.h>

#include <cohort/strategy/one_device_strategy.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

// Which context a thread is in: outside any scope, inside scope(), run() and merge_call().

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

// A ReplicaContext used where it is not the current one: three situations, three texts.

/// Every function of a ReplicaContext that communicates must be refused with this text.
template <class Matcher>
void expect_refused(const ReplicaContext& replica, const Matcher& text) {
  EXPECT_THAT([&] { return replica.all_reduce(ReduceOp::kSum, 1.0); },
              ThrowsMessage<WrongContext>(AllOf(HasSubstr("all_reduce was called"), text)));
  EXPECT_THAT([&] { return replica.all_gather(Tensor::from({1.0f}), 0); },
              ThrowsMessage<WrongContext>(AllOf(HasSubstr("all_gather was called"), text)));
  EXPECT_THAT([&] { replica.merge_call([](const Strategy&) {}); },
              ThrowsMessage<WrongContext>(AllOf(HasSubstr("merge_call was called"), text)));
}

class ContextMisuse : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(ContextMisuse);

TEST_P(ContextMisuse, InCrossReplicaContextIsRefused) {
  strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](const Strategy&) {
      expect_refused(replica, HasSubstr("not inside a replica function; it is in cross-replica context"));
    });
  });
}

TEST_P(ContextMisuse, InARunInsideAMergeIsRefused) {
  strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](const Strategy& strategy) {
      strategy.run(
          [&] { expect_refused(replica, HasSubstr("of the same strategy; use the context given to")); });
    });
  });
}

TEST_P(ContextMisuse, WhileAnotherStrategyIsActiveIsRefused) {
  const OneDeviceStrategy other;
  strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() != 0) return;
    std::thread([&] {
      other.run([&] {
        expect_refused(replica,
                       HasSubstr("a replica context of MirroredStrategy, but OneDeviceStrategy is active"));
      });
    }).join();
  });
}

TEST_P(ContextMisuse, OnAThreadThatIsNoReplicaIsRefused) {
  strategy_.run([&](ReplicaContext& replica) {
    std::thread([&] { expect_refused(replica, HasSubstr("but the default strategy is active")); }).join();
  });
}

class ContextOfAnotherReplica : public WithSeveralReplicas {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(ContextOfAnotherReplica);

TEST_P(ContextOfAnotherReplica, IsRefusedNamingBoth) {
  std::vector<const ReplicaContext*> contexts(static_cast<std::size_t>(replicas()));
  std::barrier together(replicas());
  strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const int neighbour = (id + 1) % replicas();
    contexts[static_cast<std::size_t>(id)] = &replica;
    together.arrive_and_wait();
    expect_refused(
        *contexts[static_cast<std::size_t>(neighbour)],
        HasSubstr("the context of replica " + std::to_string(neighbour) + ", but this thread runs replica " +
                  std::to_string(id) + " of the same strategy"));
    together.arrive_and_wait();  // contexts live until here
  });
}

TEST(ReplicaContexts, AreNotCopied) { static_assert(!std::is_copy_constructible_v<ReplicaContext>); }

}  // namespace
}  // namespace cohort::testing
