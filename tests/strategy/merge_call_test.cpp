// merge_call: all local replicas pause, one function runs for all, each gets its result.
#include <atomic>
#include <map>
#include <thread>

#include <gmock/gmock.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class MergeCall : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(MergeCall);

TEST_P(MergeCall, RunsTheFunctionOnceForAllReplicasOnTheThreadThatCalledRun) {
  const auto caller = std::this_thread::get_id();
  int merges = 0;
  strategy_.run([&](ReplicaContext& replica) {
    for (int round = 1; round <= 10; ++round) {
      replica.merge_call([&](const Strategy& strategy) {
        EXPECT_EQ(strategy, strategy_);
        EXPECT_EQ(std::this_thread::get_id(), caller);
        ++merges;
      });
      EXPECT_EQ(merges, round);
    }
  });
  EXPECT_EQ(merges, 10);
}

TEST_P(MergeCall, PausesEveryReplica) {
  std::atomic<int> running = 0;
  strategy_.run([&](ReplicaContext& replica) {
    for (int round = 0; round < 10; ++round) {
      ++running;
      replica.merge_call([&](const Strategy&) { EXPECT_EQ(running.exchange(0), replicas()); });
    }
  });
}

TEST_P(MergeCall, HandsTheFunctionTheArgumentsOfAllReplicasInOrder) {
  strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    replica.merge_call(
        [&](const Strategy&, const PerReplica<int>& ids, const PerReplica<std::vector<Tensor>>& tensors,
            const PerReplica<bool>& flags) {
          ASSERT_THAT(ids.components(), SizeIs(replicas()));
          for (std::size_t i = 0; i < ids.size(); ++i) {
            EXPECT_EQ(ids[i], static_cast<int>(i));
            EXPECT_EQ(tensors[i][0].item<int>(), 2 * static_cast<int>(i));
            EXPECT_EQ(flags[i], i == 0);
          }
        },
        id, std::vector{Tensor::scalar(2 * id)}, id == 0);
  });
}

TEST_P(MergeCall, GivesEachReplicaItsComponentOfAPerReplicaResult) {
  const auto results = strategy_.run([](ReplicaContext& replica) {
    const int mine = replica.merge_call([](const Strategy&, const PerReplica<int>& ids) { return ids; },
                                        replica.replica_id_in_sync_group());
    return mine + 10;
  });
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], static_cast<int>(i) + 10);
}

TEST_P(MergeCall, GivesEveryReplicaAnyOtherResultAsItIs) {
  const auto results = strategy_.run(
      [](ReplicaContext& replica) { return replica.merge_call([](const Strategy&) { return 42; }); });
  EXPECT_THAT(results.components(), Each(42));
  Tensor tensor = Tensor::scalar(1.0f);
  const auto tensors = strategy_.run(
      [&](ReplicaContext& replica) { return replica.merge_call([&](const Strategy&) { return tensor; }); });
  for (const Tensor& result : tensors.components()) EXPECT_EQ(result.data(), tensor.data());
}

TEST_P(MergeCall, UsesTheFunctionOfReplicaZero) {
  const auto results = strategy_.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return replica.merge_call([id](const Strategy&) { return 100 + id; });
  });
  EXPECT_THAT(results.components(), Each(100));
}

TEST_P(MergeCall, MayReduceAndGather) {
  const auto sums = strategy_.run([](ReplicaContext& replica) {
    return replica.merge_call(
        [](const Strategy& strategy, const PerReplica<double>& values) {
          return strategy.reduce(ReduceOp::kSum, values);
        },
        replica.replica_id_in_sync_group() + 1.0);
  });
  EXPECT_THAT(sums.components(), Each(sum_to(replicas())));
}

TEST_P(MergeCall, MayBeInterleavedWithCollectives) {
  strategy_.run([&](ReplicaContext& replica) {
    for (int round = 0; round < 5; ++round) {
      EXPECT_EQ(replica.all_reduce(ReduceOp::kSum, 1.0), replicas());
      const int merged = replica.merge_call([&](const Strategy&) { return round; });
      EXPECT_EQ(merged, round);
    }
  });
}

TEST_P(MergeCall, MayRunReplicasAgain) {
  const auto results = strategy_.run([](ReplicaContext& replica) {
    return replica.merge_call(
        [](const Strategy& strategy, const PerReplica<int>& values) {
          return strategy.run(
              [](ReplicaContext& inner, int value) {
                EXPECT_EQ(inner.all_reduce(ReduceOp::kSum, 1.0), inner.num_replicas_in_sync());
                return 10 * value + inner.replica_id_in_sync_group();
              },
              values);
        },
        replica.replica_id_in_sync_group() + 1);
  });
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int id = static_cast<int>(i);
    EXPECT_EQ(results[i], 10 * (id + 1) + id);
  }
}

/// Runs and merges `depth` times inside each other; the sum over all replicas of all levels.
int nested_sum(const Strategy& strategy, int depth) {
  if (depth == 0) return 0;
  const auto sums = strategy.run([&](ReplicaContext& replica) {
    return 1 + replica.merge_call([&](const Strategy& inner) { return nested_sum(inner, depth - 1); });
  });
  return strategy.reduce(ReduceOp::kSum, sums);
}

TEST_P(MergeCall, MayBeNestedDeeply) {
  int wanted = 0;
  for (int depth = 1; depth <= 3; ++depth) {
    wanted = replicas() * (1 + wanted);
    EXPECT_EQ(nested_sum(strategy_, depth), wanted);
  }
}

TEST_P(MergeCall, ThrowsWhatTheFunctionThrows) {
  const auto run = [&] {
    strategy_.run([](ReplicaContext& replica) {
      replica.merge_call([](const Strategy&) { throw std::out_of_range("in merge"); });
      ADD_FAILURE() << "the replica went on";
    });
  };
  EXPECT_THAT(run, ThrowsMessage<std::out_of_range>("in merge"));
  EXPECT_EQ(nested_sum(strategy_, 2), replicas() * (1 + replicas())) << "the strategy is usable afterwards";
}

TEST_P(MergeCall, ThrowsThroughAllLevels) {
  const auto run = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      replica.merge_call([&](const Strategy& strategy) {
        strategy.run([&](ReplicaContext& inner) {
          if (inner.replica_id_in_sync_group() == last()) throw std::out_of_range("deep inside");
          inner.merge_call([](const Strategy&) {});
        });
      });
    });
  };
  EXPECT_THAT(run, ThrowsMessage<std::out_of_range>("deep inside"));
  EXPECT_EQ(nested_sum(strategy_, 3), replicas() * (1 + replicas() * (1 + replicas())));
}

TEST_P(MergeCall, MayHandleTheFailureOfARunOfItsOwn) {
  const auto results = strategy_.run([&](ReplicaContext& replica) {
    const bool failed = replica.merge_call([&](const Strategy& strategy) {
      try {
        strategy.run([](ReplicaContext& inner) {
          if (inner.replica_id_in_sync_group() == 0) throw std::out_of_range("inner");
          static_cast<void>(inner.all_reduce(ReduceOp::kSum, 1.0));
        });
      } catch (const std::out_of_range&) {
        return true;
      }
      return false;
    });
    EXPECT_TRUE(failed);
    return replica.all_reduce(ReduceOp::kSum, 1.0);
  });
  EXPECT_THAT(results.components(), Each(replicas()));
}

class UnequalMerges : public WithSeveralReplicas {
 protected:
  /// Replica r merges `merges(r)` times.
  template <class Merges>
  auto running(Merges merges) {
    return [this, merges] {
      strategy_.run([&](ReplicaContext& replica) {
        for (int i = 0; i < merges(replica.replica_id_in_sync_group()); ++i)
          replica.merge_call([](const Strategy&) {});
      });
    };
  }
  void TearDown() override { EXPECT_EQ(nested_sum(strategy_, 1), replicas()); }
};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(UnequalMerges);

TEST_P(UnequalMerges, AreAnErrorThatNamesBothSides) {
  EXPECT_THAT(running([](int id) { return id == 0 ? 1 : 0; }),
              ThrowsMessage<WrongContext>(
                  AllOf(HasSubstr("different number of merge_call calls"), HasSubstr("replica 0 (worker 0, "),
                        HasSubstr("as meeting 1 of this run"), HasSubstr("but replica 1 (worker 0, "))));
  EXPECT_THAT(running([](int id) { return id == 0 ? 0 : 1; }),
              ThrowsMessage<WrongContext>(
                  ContainsRegex("but replica 0 \\(.*\\) has returned from the replica function")));
}

TEST_P(UnequalMerges, CountTheCallsThatWentWell) {
  EXPECT_THAT(
      running([&](int id) { return id == last() ? 3 : 2; }),
      ThrowsMessage<WrongContext>(ContainsRegex("replica " + std::to_string(last()) +
                                                " \\(.*\\) calls merge_call and waits, as meeting 3")));
}

TEST_P(UnequalMerges, IncludeThoseOfDifferentArguments) {
  const auto run = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() == last()) {
        replica.merge_call([](const Strategy&, const PerReplica<double>&) {}, 1.0);
      } else {
        replica.merge_call([](const Strategy&, const PerReplica<int>&) {}, 1);
      }
    });
  };
  EXPECT_THAT(run, ThrowsMessage<InvalidArgument>(ContainsRegex(
                       "replica " + std::to_string(last()) +
                       " \\(worker 0, .*\\) passes arguments of other types, or a function with "
                       "another type of result, than replica 0 \\(")));
}

}  // namespace
}  // namespace cohort::testing
