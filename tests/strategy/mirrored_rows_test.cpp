// Updates of rows of mirrored variables.
#include <gmock/gmock.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Scatter = const Variable& (Variable::*)(const IndexedSlices&) const;
constexpr Scatter kArithmetic[] = {&Variable::scatter_add, &Variable::scatter_sub, &Variable::scatter_mul,
                                   &Variable::scatter_div};
constexpr Scatter kSelecting[] = {&Variable::scatter_min, &Variable::scatter_max, &Variable::scatter_update};

class MirroredRows : public WithReplicas {
 protected:
  [[nodiscard]] Variable variable(VariableAggregation aggregation, const std::vector<double>& values) const {
    return variable_in(strategy_,
                       {.name = "v", .initial_value = vector_of(values), .aggregation = aggregation});
  }
  static IndexedSlices rows(const std::vector<std::int64_t>& indices, const std::vector<double>& values,
                            std::int64_t extent) {
    return {vector_of(values), vector_of(indices), {extent}};
  }
  /// Replica r names row r with the value r+2.
  void scatter_own_row(const Variable& target, Scatter scatter) const {
    strategy_.run([&](ReplicaContext& replica) {
      const int id = replica.replica_id_in_sync_group();
      (target.*scatter)(rows({id}, {id + 2.0}, target.shape()[0]));
    });
  }
  /// One value for every row that some replica names, in each component.
  void expect_components(const Variable& target, const std::function<double(int row)>& wanted) const {
    for (int id = 0; id < replicas(); ++id) {
      for (int row = 0; row < replicas(); ++row)
        EXPECT_THAT(component(target, id)[static_cast<std::size_t>(row)], DoubleNear(wanted(row), 1e-12));
    }
  }
  [[nodiscard]] static std::vector<double> sixes() {
    return std::vector<double>(static_cast<std::size_t>(replicas()), 6);
  }
};
COHORT_INSTANTIATE_REPLICAS(MirroredRows);

TEST_P(MirroredRows, OfAllReplicasAreAppliedToEveryComponent) {
  const auto check = [&](Scatter scatter, const std::function<double(int)>& wanted) {
    const Variable target = variable(VariableAggregation::kSum, sixes());
    scatter_own_row(target, scatter);
    expect_components(target, wanted);
  };
  check(&Variable::scatter_add, [](int row) { return 6 + (row + 2.0); });
  check(&Variable::scatter_sub, [](int row) { return 6 - (row + 2.0); });
  check(&Variable::scatter_mul, [](int row) { return 6 * (row + 2.0); });
  check(&Variable::scatter_div, [](int row) { return 6 / (row + 2.0); });
}

TEST_P(MirroredRows, OfAMeanAreDividedByTheNumberOfReplicas) {
  const double n = replicas();
  const auto check = [&](Scatter scatter, const std::function<double(int)>& wanted) {
    const Variable target = variable(VariableAggregation::kMean, sixes());
    scatter_own_row(target, scatter);
    expect_components(target, wanted);
  };
  check(&Variable::scatter_add, [n](int row) { return 6 + (row + 2.0) / n; });
  check(&Variable::scatter_mul, [n](int row) { return 6 * (row + 2.0) / n; });
  check(&Variable::scatter_div, [n](int row) { return 6 / ((row + 2.0) / n); });
}

TEST_P(MirroredRows, OfTheFirstReplicaAreThoseOfAllComponents) {
  for (const Scatter scatter : kArithmetic) {
    const Variable target = variable(VariableAggregation::kOnlyFirstReplica, sixes());
    scatter_own_row(target, scatter);
    for (int id = 0; id < replicas(); ++id) {
      EXPECT_NE(component(target, id)[0], 6);
      EXPECT_EQ(component(target, id), component(target, 0));
      if (replicas() == 1) continue;
      EXPECT_EQ(component(target, id)[1], 6) << "only replica 0's row counts";
    }
  }
  const Variable target = variable(VariableAggregation::kOnlyFirstReplica, sixes());
  scatter_own_row(target, &Variable::scatter_update);
  EXPECT_EQ(component(target, last())[0], 2);
}

// A read inside a replica or an update is no copy.
TEST_P(MirroredRows, OfBoolMayBeReplacedByThoseOfTheFirstReplica) {
  const Variable target = variable_in(strategy_, {.initial_value = Tensor::from({false, true}),
                                                  .aggregation = VariableAggregation::kOnlyFirstReplica});
  strategy_.run([&](ReplicaContext& replica) {
    const bool is_first = replica.replica_id_in_sync_group() == 0;
    target.scatter_update({Tensor::from({is_first}), Tensor::from({0}), {2}});
  });
  for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(target, id), ElementsAre(1, 1));
}

TEST_P(MirroredRows, MayBeReadOfTheVariableItself) {
  const auto reversed = [](const Variable& target) {
    target.scatter_add({target.read(), Tensor::from({2, 1, 0}), {3}});
  };
  const Variable in_replicas = variable(VariableAggregation::kNone, {1, 2, 4});
  strategy_.run([&] { reversed(in_replicas); });
  const Variable in_updates = variable(VariableAggregation::kSum, {1, 2, 4});
  strategy_.extended().update(in_updates, reversed);
  const Variable across = variable(VariableAggregation::kSum, {1, 2, 4});
  across.scatter_add({across.components()[0], Tensor::from({2, 1, 0}), {3}});
  for (const Variable& target : {in_replicas, in_updates, across}) {
    for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(target, id), ElementsAre(5, 4, 5));
  }
}

TEST_P(MirroredRows, WithoutAggregationAreTheReplicasOwn) {
  for (const Scatter scatter : kSelecting) {
    const Variable target = variable(VariableAggregation::kNone, sixes());
    strategy_.run([&](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() == last()) (target.*scatter)(rows({0}, {6}, replicas()));
    });
    scatter_own_row(target, scatter);
    for (int id = 0; id < replicas(); ++id) {
      for (int row = 0; row < replicas(); ++row) {
        if (row == id) continue;
        EXPECT_EQ(component(target, id)[static_cast<std::size_t>(row)], 6);
      }
    }
  }
  const Variable target = variable(VariableAggregation::kNone, sixes());
  scatter_own_row(target, &Variable::scatter_update);
  EXPECT_EQ(component(target, last()).back(), last() + 2);
}

TEST_P(MirroredRows, MayDifferInNumber) {
  const Variable target = variable(VariableAggregation::kSum, {0, 0});
  strategy_.run([&](ReplicaContext& replica) {
    const auto count = static_cast<std::size_t>(replica.replica_id_in_sync_group());
    target.scatter_add(rows(std::vector<std::int64_t>(count, 1), std::vector<double>(count, 1), 2));
  });
  for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(target, id), ElementsAre(0, sum_to(last())));
}

TEST_P(MirroredRows, AreAppliedToEveryComponentOutsideReplicas) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable target = variable(aggregation, {1, 2});
    target.scatter_mul(rows({1}, {3}, 2));
    const auto scope = strategy_.scope();
    target.scatter_add(rows({0, 0}, {1, 1}, 2));
    for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(target, id), ElementsAre(3, 6));
  }
}

TEST_P(MirroredRows, MayBeAComponentsOwn) {
  const Variable target = variable(VariableAggregation::kNone, {1, 2});
  target.scatter_add({target.components()[0], vector_of<std::int64_t>({0, 1}), {2}});
  for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(target, id), ElementsAre(2, 4));
}

TEST_P(MirroredRows, ChangeTheComponentAloneInAnUpdate) {
  const Variable target = variable(VariableAggregation::kSum, sixes());
  strategy_.extended().update(target, [&](const Variable& v) {
    v.scatter_add(rows({0}, {*get_update_replica_id() + 1.0}, replicas()));
  });
  for (int id = 0; id < replicas(); ++id) EXPECT_EQ(component(target, id)[0], 7 + id);
}

TEST_P(MirroredRows, AreNotSelectedAmongSumsAndMeans) {
  for (const auto aggregation : {VariableAggregation::kSum, VariableAggregation::kMean}) {
    const Variable target = variable(aggregation, sixes());
    for (const Scatter scatter : kSelecting) {
      const auto refused = ThrowsMessage<Unimplemented>(
          AllOf(HasSubstr("variable 'v' with aggregation " + std::string(to_string(aggregation)))));
      EXPECT_THAT([&] { (target.*scatter)(rows({0}, {1}, replicas())); }, refused);
      EXPECT_THAT([&] { scatter_own_row(target, scatter); }, refused);
    }
    EXPECT_THAT(component(target, 0), Each(6));
  }
}

}  // namespace
}  // namespace cohort::testing
