// A replica that cannot make a collective, because of its own arguments, and goes on: the others must neither
// wait for it nor take its next call for the missing one.
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/value/variable.h>

#include "strategies.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Call = std::function<void(const ReplicaContext&)>;

void sum_up(const ReplicaContext& replica) { static_cast<void>(replica.all_reduce(ReduceOp::kSum, 1.0)); }

class UnmadeCollective : public WithSeveralReplicas {
 protected:
  /// Matches what everybody is told but the last replica, which `text` comes from.
  [[nodiscard]] static auto told(const char* text) {
    return AllOf(ContainsRegex("replica " + std::to_string(last()) + " \\(worker 0, .*\\) failed first"),
                 HasSubstr(text));
  }

  /// `call` fails on the last replica, which goes on with what the others do: they sum up.
  void expect_told(const char* text, const Call& call) {
    strategy_.run([&](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() == last()) {
        EXPECT_THAT([&] { call(replica); }, ThrowsMessage<Error>(HasSubstr(text)));
      }
      EXPECT_THAT(message_of(ErrorCode::kAborted, [&] { sum_up(replica); }), told(text));
    });
  }

  void TearDown() override {
    const auto sums =
        strategy_.run([](ReplicaContext& replica) { return replica.all_reduce(ReduceOp::kSum, 1); });
    for (const int sum : sums.components()) EXPECT_EQ(sum, replicas()) << "the strategy is usable afterwards";
  }
};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(UnmadeCollective);

TEST_P(UnmadeCollective, OfTheContextEndsAll) {
  const Tensor flags = Tensor::from({true});
  const Tensor row = Tensor::from({1.0F, 2.0F});
  const IndexedSlices slices{Tensor::zeros({1, 2}, DType::kFloat32), Tensor::from({7}), {4, 2}};
  expect_told("sum of bool is not defined", [&](const ReplicaContext& replica) {
    static_cast<void>(replica.all_reduce(ReduceOp::kSum, flags));
  });
  expect_told("index 7", [&](const ReplicaContext& replica) {
    static_cast<void>(replica.all_reduce(ReduceOp::kSum, slices));
  });
  expect_told("timeout_seconds", [&](const ReplicaContext& replica) {
    static_cast<void>(replica.all_reduce(ReduceOp::kSum, row, {.timeout_seconds = -1}));
  });
  expect_told("sum of bool is not defined", [&](const ReplicaContext& replica) {
    replica.all_reduce_in_place(ReduceOp::kSum, {&flags, 1});
  });
  expect_told("sparse values are gathered by all_reduce", [&](const ReplicaContext& replica) {
    static_cast<void>(replica.all_gather(TensorOrSlices(slices), 0));
  });
  expect_told("has no part", [&](const ReplicaContext& replica) {
    static_cast<void>(replica.reduce_scatter(ReduceOp::kSum, row, Tensor::zeros({2, 2}, DType::kFloat32), 0));
  });
}

TEST_P(UnmadeCollective, OfAVariableEndsAll) {
  const auto scope = strategy_.scope();
  const Variable count({.dtype = DType::kInt32, .aggregation = VariableAggregation::kSum});
  const Variable rows({.shape = {4, 2}, .aggregation = VariableAggregation::kSum});
  expect_told("dtype and shape must agree",
              [&](const ReplicaContext&) { rows.assign(Tensor::from({1.0F})); });
  expect_told("cannot hold 1.5", [&](const ReplicaContext&) { count.assign(1.5); });
  expect_told("index 7", [&](const ReplicaContext&) {
    rows.scatter_add({Tensor::zeros({1, 2}, DType::kFloat32), Tensor::from({7}), {4, 2}});
  });
}

TEST_P(UnmadeCollective, OfAVariableThatEachReplicaWritesAloneConcernsNobodyElse) {
  const auto scope = strategy_.scope();
  const Variable own({.shape = {2}, .synchronization = VariableSynchronization::kOnRead});
  strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == last()) {
      EXPECT_THROW(own.assign(Tensor::from({1.0F})), InvalidArgument);
    }
    EXPECT_NO_THROW(sum_up(replica));
  });
}

TEST_P(UnmadeCollective, ThatNobodyHandlesIsTheErrorOfTheRun) {
  const auto run = [&] {
    strategy_.run([](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() == last())
        static_cast<void>(replica.all_reduce(ReduceOp::kSum, Tensor::from({true})));
      else
        sum_up(replica);
    });
  };
  for (int round = 0; round < 20; ++round)
    EXPECT_THAT(run, ThrowsMessage<InvalidArgument>(HasSubstr("bool"))) << "not the others' Aborted";
}

TEST_P(UnmadeCollective, ThatOnlyItsReplicaHandlesIsTheErrorOfTheOthers) {
  const auto run = [&] {
    strategy_.run([](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() != last()) return sum_up(replica);
      EXPECT_THROW(static_cast<void>(replica.all_reduce(ReduceOp::kSum, Tensor::from({true}))),
                   InvalidArgument);
    });
  };
  EXPECT_THAT(run, ThrowsMessage<Aborted>(told("bool")));
}

/// The other replicas sum up; the last one does `instead`, and makes as many sums before as they do.
class DesertedCollective : public UnmadeCollective {
 protected:
  void expect_deserted(const char* where, const Call& instead) {
    // Whether the last replica is gone before the others begin, or after, is up to the threads.
    for (int sums_before = 0; sums_before < 20; ++sums_before) {
      const auto body = [&](ReplicaContext& replica) {
        for (int sum = 0; sum < sums_before; ++sum) sum_up(replica);
        if (replica.replica_id_in_sync_group() == last()) return instead(replica);
        sum_up(replica);
      };
      EXPECT_THAT(
          [&] { strategy_.run(body); },
          ThrowsMessage<WrongContext>(AllOf(
              HasSubstr("all_reduces (sum) float64, but replica " + std::to_string(last()) + " (worker 0, "),
              HasSubstr(where),
              HasSubstr("wait for it in collective " + std::to_string(sums_before + 1) + " of this run"))));
    }
  }
};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(DesertedCollective);

class EmptyCollective : public UnmadeCollective {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(EmptyCollective);

TEST_P(DesertedCollective, ByAReturnEndsAll) {
  expect_deserted("has returned", [](const ReplicaContext&) {});
}

TEST_P(DesertedCollective, ByAMergeEndsAll) {
  expect_deserted("calls merge_call",
                  [](const ReplicaContext& replica) { replica.merge_call([](const Strategy&) {}); });
}

TEST_P(DesertedCollective, ByMakingAVariableEndsAll) {
  expect_deserted("makes variable late",
                  [](const ReplicaContext&) { static_cast<void>(Variable({.name = "late"})); });
}

TEST_P(EmptyCollective, IsACallLikeAnyOther) {
  const std::vector<Tensor> none;
  const auto sums = strategy_.run([&](const ReplicaContext& replica) {
    EXPECT_TRUE(replica.all_reduce(ReduceOp::kSum, none).empty());
    EXPECT_TRUE(replica.all_gather(none, 0).empty());
    EXPECT_TRUE(replica.reduce_scatter(ReduceOp::kSum, none, none, 0).empty());
    replica.all_reduce_in_place(ReduceOp::kSum, {});
    return replica.all_reduce(ReduceOp::kSum, 1);
  });
  for (const int sum : sums.components()) EXPECT_EQ(sum, replicas());
}

/// What would add up to 11 if empty calls were none: the replicas' first sums would be taken for one call.
TEST_P(EmptyCollective, IsNotTakenForTheNextOne) {
  const std::vector<Tensor> none;
  EXPECT_THAT(([&] {
                strategy_.run([&](const ReplicaContext& replica) {
                  const bool first = replica.replica_id_in_sync_group() == 0;
                  const std::vector<Tensor> mine{Tensor::scalar(first ? 1.0F : 10.0F)};
                  static_cast<void>(replica.all_reduce(ReduceOp::kSum, first ? none : mine));
                  static_cast<void>(replica.all_reduce(ReduceOp::kSum, first ? mine : none));
                });
              }),
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("all_reduces (sum) {float32[]}"), HasSubstr("all_reduces (sum) {}"))));
}

}  // namespace
}  // namespace cohort::testing
