// Replicas that do not make the same collective calls: an error on all of them, never a hang.
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor floats(std::int64_t elements) { return Tensor::zeros({elements}, DType::kFloat32); }

class CollectiveMismatch : public WithSeveralReplicas {
 protected:
  /// Runs `usual` on all replicas but the last one, and `odd` there.
  template <class Usual, class Odd>
  auto running(Usual usual, Odd odd) {
    return [this, usual, odd] {
      strategy_.run([&](ReplicaContext& replica) {
        if (replica.replica_id_in_sync_group() == last())
          odd(replica);
        else
          usual(replica);
      });
    };
  }

  /// The same for what the replicas sum up.
  template <class Usual, class Odd>
  auto summing(const Usual& usual, const Odd& odd) {
    return running(
        [usual](ReplicaContext& replica) { static_cast<void>(replica.all_reduce(ReduceOp::kSum, usual)); },
        [odd](ReplicaContext& replica) { static_cast<void>(replica.all_reduce(ReduceOp::kSum, odd)); });
  }

  [[nodiscard]] std::string member(int id) const { return "replica " + std::to_string(id) + " (worker 0, "; }
  [[nodiscard]] std::string odd_member() const { return member(last()); }

  void TearDown() override {
    const auto sums =
        strategy_.run([](ReplicaContext& replica) { return replica.all_reduce(ReduceOp::kSum, 1); });
    for (const int sum : sums.components()) EXPECT_EQ(sum, replicas()) << "the strategy is usable afterwards";
  }
};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(CollectiveMismatch);

TEST_P(CollectiveMismatch, OfShapesNamesTheOddMemberAndBothCalls) {
  EXPECT_THAT(summing(floats(1000), floats(24)),
              ThrowsMessage<InvalidArgument>(AllOf(
                  HasSubstr("all_reduce #0: members disagree: "), HasSubstr(odd_member()),
                  HasSubstr("all_reduces (sum) float32[24]"), HasSubstr("all_reduces (sum) float32[1000]"))));
}

TEST_P(CollectiveMismatch, OfDtypesIsFoundAlsoWhereAMeanConvertsThemToTheSame) {
  const auto averaging = [](DType dtype) {
    return [dtype](ReplicaContext& replica) {
      static_cast<void>(replica.all_reduce(ReduceOp::kMean, Tensor::zeros({2}, dtype)));
    };
  };
  for (const DType odd : {DType::kInt8, DType::kFloat32})
    EXPECT_THAT(running(averaging(DType::kInt16), averaging(odd)),
                ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
}

TEST_P(CollectiveMismatch, OfShapesIsFoundAlsoWhenTheyDifferLittle) {
  EXPECT_THAT(summing(floats(3), floats(4)), ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
  EXPECT_THAT(summing(floats(0), floats(1)), ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
}

TEST_P(CollectiveMismatch, OfShapesIsFoundAlsoWhenTheyHaveEquallyManyElements) {
  EXPECT_THAT(summing(floats(6).reshape({2, 3}), floats(6).reshape({3, 2})),
              ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
  EXPECT_THAT(summing(std::pair(floats(3), floats(5)), std::pair(floats(5), floats(3))),
              ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
}

TEST_P(CollectiveMismatch, OfDtypesIsFound) {
  EXPECT_THAT(summing(floats(4), floats(4).cast(DType::kInt32)),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(odd_member()), HasSubstr("int32[4]"))));
}

TEST_P(CollectiveMismatch, OfStructuresIsFound) {
  EXPECT_THAT(summing(std::vector{floats(4)}, std::vector{floats(4), floats(4)}),
              ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
  EXPECT_THAT(summing(std::vector{floats(4)}, std::vector{floats(4), Tensor::from({1.0})}),
              ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
}

TEST_P(CollectiveMismatch, OfKeysAndPresenceIsFound) {
  using Named = std::map<std::string, Tensor>;
  EXPECT_THAT(summing(Named{{"a", floats(4)}}, Named{{"b", floats(4)}}),
              ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
  using Either = std::pair<std::optional<Tensor>, std::optional<Tensor>>;
  EXPECT_THAT(summing(Either{floats(4), {}}, Either{{}, floats(4)}),
              ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
}

TEST_P(CollectiveMismatch, OfOperatorsIsFound) {
  EXPECT_THAT(
      running([](ReplicaContext& replica) { static_cast<void>(replica.all_reduce(ReduceOp::kSum, 1.0)); },
              [](ReplicaContext& replica) { static_cast<void>(replica.all_reduce(ReduceOp::kMean, 1.0)); }),
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(odd_member()), HasSubstr("mean"))));
}

TEST_P(CollectiveMismatch, OfFunctionsIsFound) {
  EXPECT_THAT(
      running([](ReplicaContext& replica) { static_cast<void>(replica.all_reduce(ReduceOp::kSum, 1.0)); },
              [](ReplicaContext& replica) { static_cast<void>(replica.all_gather(floats(1), 0)); }),
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr(odd_member()), HasSubstr("all_gathers float32[1] along axis 0"))));
}

TEST_P(CollectiveMismatch, OfGatheredExtentsIsFound) {
  const auto gathering = [](const Tensor& tensor) {
    return [tensor](ReplicaContext& replica) { static_cast<void>(replica.all_gather(tensor, 0)); };
  };
  EXPECT_THAT(running(gathering(floats(6).reshape({2, 3})), gathering(floats(4).reshape({1, 4}))),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("shape mismatch"), HasSubstr(odd_member()),
                                                   HasSubstr("has float32[1, 4]"))));
  EXPECT_THAT(running(gathering(floats(6).reshape({2, 3})), gathering(floats(6))),
              ThrowsMessage<InvalidArgument>(HasSubstr("shape mismatch")));
  EXPECT_THAT(running(gathering(floats(2)), gathering(Tensor::zeros({2}, DType::kInt32))),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("int32"), HasSubstr("dtypes must agree"))));
}

TEST_P(CollectiveMismatch, OfGatheredStructuresIsFound) {
  const auto gathering = [](const auto& structure) {
    return [structure](ReplicaContext& replica) { static_cast<void>(replica.all_gather(structure, 0)); };
  };
  using Named = std::map<std::string, Tensor>;
  EXPECT_THAT(running(gathering(Named{{"a", floats(4)}}), gathering(Named{{"b", floats(4)}})),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("members disagree"), HasSubstr(odd_member()))));
  EXPECT_THAT(running(gathering(std::vector{floats(4)}), gathering(std::vector{floats(4), floats(4)})),
              ThrowsMessage<InvalidArgument>(HasSubstr(odd_member())));
}

TEST_P(CollectiveMismatch, OfAxesIsFound) {
  const auto gathering = [](int axis) {
    return [axis](ReplicaContext& replica) {
      static_cast<void>(replica.all_gather(floats(4).reshape({2, 2}), axis));
    };
  };
  EXPECT_THAT(running(gathering(0), gathering(1)),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("members disagree"), HasSubstr(odd_member()))));
  EXPECT_NO_THROW(running(gathering(1), gathering(-1))());
}

class MismatchError : public WithSeveralReplicas {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(MismatchError);

TEST_P(MismatchError, IsTheSameOnEveryReplica) {
  const auto errors = strategy_.run([&](ReplicaContext& replica) -> std::string {
    try {
      const bool odd = replica.replica_id_in_sync_group() == last();
      static_cast<void>(replica.all_reduce(ReduceOp::kSum, floats(odd ? 24 : 25)));
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "no error";
  });
  for (const std::string& error : errors.components()) EXPECT_EQ(error, errors[0]);
  EXPECT_THAT(errors[0], HasSubstr("replica " + std::to_string(last()) + " "));
}

class MissingReplica : public WithReplicas {
 protected:
  const MirroredStrategy impatient_ = mirrored(replicas(), kImpatient);

  /// All replicas but the last one sum up; the last one does `instead`. One that had returned, or waited in a
  /// merge, would be missed at once.
  template <class Instead>
  auto running(Instead instead) {
    return [this, instead] {
      impatient_.run([&](ReplicaContext& replica) {
        if (replica.replica_id_in_sync_group() == last())
          instead(replica);
        else
          sum_up(replica);
      });
    };
  }

  void sum_up(ReplicaContext& replica) {
    try {
      static_cast<void>(replica.all_reduce(ReduceOp::kSum, 1.0));
    } catch (...) {
      given_up_ = true;
      throw;
    }
  }

  void compute_until_given_up() {
    while (!given_up_) std::this_thread::yield();
  }

  std::atomic<bool> given_up_ = false;
};
INSTANTIATE_TEST_SUITE_P(Replicas, MissingReplica, ::testing::Values(2, 3),
                         ::testing::PrintToStringParamName());

TEST_P(MissingReplica, IsNamedWhenTheDeadlinePasses) {
  EXPECT_THAT(running([this](ReplicaContext&) { compute_until_given_up(); }),
              ThrowsMessage<DeadlineExceeded>(
                  AllOf(HasSubstr("all_reduce #0: deadline of "), names_missing(last(), "replica"))));
}

TEST_P(MissingReplica, IsNoReasonToGiveTheStrategyUp) {
  EXPECT_THROW(running([this](ReplicaContext&) { compute_until_given_up(); })(), DeadlineExceeded);
  EXPECT_NO_THROW(running([this](ReplicaContext& replica) { sum_up(replica); })());
}

}  // namespace
}  // namespace cohort::testing
