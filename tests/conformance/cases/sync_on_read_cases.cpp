// ON_READ variables: replicas write their own component, reads outside replicas aggregate them.
#include "replicas.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kOnRead = VariableSynchronization::kOnRead;
constexpr auto kFirstReplicas = VariableAggregation::kOnlyFirstReplica;

class SyncOnReadCase : public Replicas {
 protected:
  [[nodiscard]] Variable ten(VariableAggregation aggregation) const {
    return made({.name = "v",
                 .initial_value = Tensor::scalar(10.0),
                 .synchronization = kOnRead,
                 .aggregation = aggregation});
  }
  /// Lets replica r assign `value(r)`.
  void assign_each(const Variable& variable, const std::function<double(int r)>& value) const {
    strategy_.run(
        [&](ReplicaContext& replica) { variable.assign(value(replica.replica_id_in_sync_group())); });
  }
};
COHORT_INSTANTIATE_CASES(SyncOnReadCase);

TEST_P(SyncOnReadCase, Case013_DoesNotTrainUnlessTold) {
  EXPECT_TRUE(made({}).trainable());
  EXPECT_FALSE(made({.synchronization = kOnRead}).trainable());
  EXPECT_TRUE(made({.synchronization = kOnRead, .trainable = true}).trainable());
  EXPECT_FALSE(made({.synchronization = kOnRead, .trainable = false}).trainable());
}

TEST_P(SyncOnReadCase, Case034_OfAMeanIsAssignedTheValueEverywhere) {
  const Variable variable = ten(VariableAggregation::kMean);
  assign_each(variable, [](int) { return 1; });
  EXPECT_EQ(variable.read().item<double>(), 1);
  assign_each(variable, [](int r) { return r; });
  EXPECT_DOUBLE_EQ(variable.read().item<double>(), (replicas() - 1) / 2.0);
  EXPECT_EQ(variable.assign(6.0).read().item<double>(), 6);
  expect_components(variable, 6);
  EXPECT_EQ(variable.assign_add(2.0).read().item<double>(), 8);
  EXPECT_EQ(variable.assign_sub(5.0).read().item<double>(), 3);
  expect_components(variable, 3);
}

TEST_P(SyncOnReadCase, Case035_BesideAnOnWriteVariableOfTheFirstReplica) {
  const Variable on_read =
      made({.initial_value = Tensor::scalar(2.0), .synchronization = kOnRead, .aggregation = kFirstReplicas});
  const Variable on_write = made({.initial_value = Tensor::scalar(3.0), .aggregation = kFirstReplicas});
  strategy_.run([&](ReplicaContext& replica) {
    const int factor = replica.replica_id_in_sync_group() + 1;
    on_read.assign_add(5.0 * factor);
    on_write.assign_add(7.0 * factor);
  });
  expect_components(on_read, [](int r) { return 2 + 5 * (r + 1); });
  EXPECT_EQ(on_read.read().item<double>(), 7);
  expect_components(on_write, 10);
  EXPECT_EQ(on_write.read().item<double>(), 10);
}

TEST_P(SyncOnReadCase, Case049_OfASumSharesOutWhatItIsAssigned) {
  const Variable variable = ten(VariableAggregation::kSum);
  EXPECT_EQ(variable.assign(replicas() * 1.0).read().item<double>(), replicas());
  expect_components(variable, 1);
  const auto scope = strategy_.scope();
  variable.assign(3.0);
  expect_components(variable, 3.0 / replicas());
}

TEST_P(SyncOnReadCase, Case050_OfASumIsNotAddedToOutsideReplicas) {
  const Variable variable = ten(VariableAggregation::kSum);
  assign_each(variable, [](int r) { return r + 1; });
  const auto expect_refused = [&] {
    for (const auto change : {&Variable::assign_add<double>, &Variable::assign_sub<double>}) {
      EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { (variable.*change)(1.0); }),
                  HasSubstr("ON_READ with aggregation sum"));
    }
  };
  expect_refused();
  {
    const auto scope = strategy_.scope();
    expect_refused();
  }
  expect_components(variable, [](int r) { return r + 1; });
  EXPECT_EQ(variable.read().item<double>(), total([](int r) { return r + 1; })) << "the strategy goes on";
}

TEST_P(SyncOnReadCase, Case052_WithoutAggregationHasNoValueOutsideReplicas) {
  const Variable variable = ten(VariableAggregation::kNone);
  assign_each(variable, [](int r) { return r + 1; });
  const auto expect_refused = [&] {
    EXPECT_THAT(message_of(ErrorCode::kWrongContext, [&] { static_cast<void>(variable.read()); }),
                AllOf(HasSubstr("read of variable 'v' outside replicas"), HasSubstr("aggregation none")));
  };
  expect_refused();
  {
    const auto scope = strategy_.scope();
    expect_refused();
  }
  const auto own = each([&](int) { return variable.read().item<double>(); });
  for_each_local(own, [](int r, double value) { EXPECT_EQ(value, r + 1); });
  EXPECT_EQ(strategy_.reduce("sum", own), total([](int r) { return r + 1; })) << "the strategy goes on";
}

}  // namespace
}  // namespace cohort::testing
