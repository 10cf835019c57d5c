// What happens when a replica throws, while the others compute, communicate or merge.
#include <atomic>
#include <string>

#include <gmock/gmock.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

/// An exception that no library knows.
struct StepFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string boom(int replica) { return "boom " + std::to_string(replica); }

double all_reduced_one(const ReplicaContext& replica) { return replica.all_reduce(ReduceOp::kSum, 1.0); }

/// After a failure, runs, collectives and merges work as if nothing had happened.
void expect_usable(const Strategy& strategy) {
  const auto sums = strategy.run([](ReplicaContext& replica) {
    const double sum = all_reduced_one(replica);
    return replica.merge_call([](const Strategy&, const PerReplica<double>& of_all) { return of_all; }, sum);
  });
  for (const double sum : sums.components()) EXPECT_EQ(sum, strategy.num_replicas_in_sync());
}

class ReplicaFailure : public WithReplicas {
 protected:
  void TearDown() override { expect_usable(strategy_); }
};
COHORT_INSTANTIATE_REPLICAS(ReplicaFailure);

TEST_P(ReplicaFailure, IsThrownByRunWithItsTypeAndMessage) {
  for (int failing = 0; failing < replicas(); ++failing) {
    const auto run = [&] {
      strategy_.run([&](ReplicaContext& replica) {
        if (replica.replica_id_in_sync_group() == failing) throw StepFailed(boom(failing));
      });
    };
    EXPECT_THAT(run, ThrowsMessage<StepFailed>(boom(failing)));
  }
}

TEST_P(ReplicaFailure, MayBeAnythingThatCanBeThrown) {
  try {
    strategy_.run([] { throw 42; });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const int value) {
    EXPECT_EQ(value, 42);
  }
}

TEST_P(ReplicaFailure, OfTheLowestReplicaWins) {
  const auto run = [&] {
    strategy_.run(
        [](ReplicaContext& replica) { throw StepFailed(boom(replica.replica_id_in_sync_group())); });
  };
  for (int round = 0; round < 20; ++round) EXPECT_THAT(run, ThrowsMessage<StepFailed>(boom(0)));
}

TEST_P(ReplicaFailure, LetsTheOthersFinishTheirComputation) {
  std::atomic<int> finished = 0;
  EXPECT_THROW(strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == 0) throw StepFailed("first");
    ++finished;
  }),
               StepFailed);
  EXPECT_EQ(finished, replicas() - 1) << "run() returns when all replicas have ended";
}

TEST_P(ReplicaFailure, EndsTheOthersCollectives) {
  for (int failing = 0; failing < replicas(); ++failing) {
    std::atomic<int> released = 0;
    const auto run = [&] {
      strategy_.run([&](ReplicaContext& replica) {
        if (replica.replica_id_in_sync_group() == failing) throw StepFailed(boom(failing));
        try {
          all_reduced_one(replica);
        } catch (const Aborted& error) {
          EXPECT_THAT(error.what(), AllOf(ContainsRegex("replica " + std::to_string(failing) +
                                                        " \\(worker 0, .*\\) failed first"),
                                          HasSubstr(boom(failing))));
          ++released;
          throw;
        }
      });
    };
    EXPECT_THAT(run, ThrowsMessage<StepFailed>(boom(failing))) << "not the others' Aborted";
    EXPECT_EQ(released, replicas() - 1);
  }
}

TEST_P(ReplicaFailure, EndsTheOthersMerges) {
  for (int failing = 0; failing < replicas(); ++failing) {
    bool merged = false;
    std::atomic<int> unwound = 0;
    const auto run = [&] {
      strategy_.run([&](ReplicaContext& replica) {
        if (replica.replica_id_in_sync_group() == failing) throw StepFailed(boom(failing));
        const std::shared_ptr<void> at_unwinding(nullptr, [&](void*) { ++unwound; });
        replica.merge_call([&](const Strategy&) { merged = true; });
        ADD_FAILURE() << "a merge without all replicas";
      });
    };
    EXPECT_THAT(run, ThrowsMessage<StepFailed>(boom(failing)));
    EXPECT_FALSE(merged);
    EXPECT_EQ(unwound, replicas() - 1);
  }
}

TEST_P(ReplicaFailure, IsNotHiddenByProgramsThatHandleTheirOwnExceptions) {
  const auto run = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() == last()) throw StepFailed("last");
      try {
        replica.merge_call([](const Strategy&) {});
      } catch (const std::exception& error) {
        ADD_FAILURE() << "the end of a merge looks like an error of the program: " << error.what();
      }
    });
  };
  EXPECT_THAT(run, ThrowsMessage<StepFailed>("last"));
}

TEST_P(ReplicaFailure, AfterAMergeEndsTheNextOne) {
  const auto run = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      replica.merge_call([](const Strategy&) {});
      if (replica.replica_id_in_sync_group() == 0) throw StepFailed("late");
      replica.merge_call([](const Strategy&) {});
    });
  };
  EXPECT_THAT(run, ThrowsMessage<StepFailed>("late"));
}

TEST_P(ReplicaFailure, KeepsNothingOfWhatWasThrown) {
  struct Holding {
    std::shared_ptr<int> held;
  };
  const auto held = std::make_shared<int>();
  EXPECT_THROW(strategy_.run([&] { throw Holding{held}; }), Holding);
  EXPECT_EQ(held.use_count(), 1);
}

TEST_P(ReplicaFailure, OfTheProgramsOwnAbortedErrorIsThrown) {
  EXPECT_THAT([&] { strategy_.run([] { throw Aborted("given up"); }); },
              ThrowsMessage<Aborted>(AllOf(HasSubstr("given up"), Not(HasSubstr("failed first")))));
}

TEST_P(ReplicaFailure, ThatAllReplicasHandleIsNone) {
  const auto run = [&] {
    strategy_.run([](ReplicaContext& replica) {
      try {
        throw StepFailed(boom(replica.replica_id_in_sync_group()));
      } catch (const StepFailed&) {
      }
    });
  };
  EXPECT_NO_THROW(run());
}

}  // namespace
}  // namespace cohort::testing
