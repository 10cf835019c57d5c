// What `run` hands to replicas and makes of their results, in which scopes, and what distributed values are.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/mirrored.h>
#include <cohort/value/regroup.h>
#include <cohort/value/variable_creator_scope.h>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

using Named = std::map<std::string, int>;

class RunCase : public Replicas {
 protected:
  [[nodiscard]] PerReplica<int> counted() const {
    return each([](int r) { return r + 1; });
  }
  [[nodiscard]] PerReplica<Named> doubled_and_squared() const {
    return strategy_.run([](int x) { return Named{{"a", 2 * x}, {"b", x * x}}; }, counted());
  }
};
COHORT_INSTANTIATE_CASES(RunCase);

TEST_P(RunCase, Case001_ReturnsOneResultPerReplica) {
  for_each_local(counted(), [](int r, int result) { EXPECT_EQ(result, r + 1); });
}

TEST_P(RunCase, Case002_TakesResultsOfAnEarlierRun) {
  for_each_local(doubled_and_squared(), [](int r, const Named& result) {
    EXPECT_EQ(result, (Named{{"a", 2 * (r + 1)}, {"b", (r + 1) * (r + 1)}}));
  });
}

TEST_P(RunCase, Case003_TakesStructuresOfAnEarlierRun) {
  const auto combined = strategy_.run(
      [](const Named& values) { return values.at("a") + 2 * values.at("b") + 2; }, doubled_and_squared());
  for_each_local(combined, [](int r, int result) { EXPECT_EQ(result, 2 * (r + 1) * (r + 2) + 2); });
}

TEST_P(RunCase, Case010_RunsEveryReplicaNumberOnce) {
  const auto marked = each([&](int r) {
    Tensor slots = Tensor::zeros({replicas()}, DType::kInt32);
    slots.span<std::int32_t>()[static_cast<std::size_t>(r)] = 1;
    return slots;
  });
  const Tensor marks = strategy_.reduce(ReduceOp::kSum, marked);
  EXPECT_THAT(numbers(marks), Each(1));
  EXPECT_THAT(numbers(marks), SizeIs(replicas()));
}

TEST_P(RunCase, Case140_NumbersReplicasOverAllWorkers) {
  EXPECT_EQ(replicas(), workers() * local_replicas());
  const auto ids = strategy_.run([](ReplicaContext& replica) {
    EXPECT_EQ(replica.num_replicas_in_sync(), replica.strategy().num_replicas_in_sync());
    return Tensor::from({replica.replica_id_in_sync_group()});
  });
  const std::vector<double> all = numbers(strategy_.gather(ids, 0));
  ASSERT_THAT(all, SizeIs(replicas()));
  for (int r = 0; r < replicas(); ++r) EXPECT_EQ(all[static_cast<std::size_t>(r)], r);
}

// Scopes inside scopes.

class ScopeCase : public Replicas {};
COHORT_INSTANTIATE_CASES(ScopeCase);

TEST_P(ScopeCase, Case106_MayBeEnteredAgainButNotAnothers) {
  const auto first = strategy_.scope();
  {
    const auto second = strategy_.scope();
    const auto third = strategy_.scope();
    EXPECT_EQ(get_strategy(), strategy_);
  }
  EXPECT_EQ(get_strategy(), strategy_);
  EXPECT_THAT([] { return OneDeviceStrategy().scope(); },
              ThrowsMessage<WrongContext>(HasSubstr("mixing different strategies")));
  EXPECT_EQ(get_strategy(), strategy_);
}

/// Tests leave no strategy behind.
class SetStrategyCase : public Replicas {
 protected:
  void TearDown() override { set_strategy(std::nullopt); }

  /// Inside whatever scope the caller has open.
  void expect_refused() const {
    const auto refused = ThrowsMessage<WrongContext>(HasSubstr("set_strategy was called inside a scope"));
    EXPECT_THAT([] { set_strategy(std::nullopt); }, refused);
    EXPECT_THAT([&] { set_strategy(strategy_); }, refused);
  }
};
COHORT_INSTANTIATE_CASES(SetStrategyCase);

TEST_P(SetStrategyCase, Case107_IsRefusedInsideScopes) {
  for (const bool is_set : {false, true}) {
    if (is_set) set_strategy(strategy_);
    {
      const auto scope = strategy_.scope();
      expect_refused();
    }
    {
      const DeviceScope device(Device::cpu(0));
      expect_refused();
    }
    {
      const VariableCreatorScope creator(
          [](const NextCreator& next, VariableOptions options) { return next(std::move(options)); });
      expect_refused();
    }
    strategy_.run([&] { expect_refused(); });
    EXPECT_EQ(has_strategy(), is_set);
    EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, each([](int) { return 1; })), replicas());
  }
}

// Distributed values: as operands, and in structures that are taken apart and put together.

class ValueCase : public Replicas {};
COHORT_INSTANTIATE_CASES(ValueCase);

TEST_P(ValueCase, Case058_IsNoOperandOutsideReplicas) {
  const PerReplica<int> value = each([](int r) { return 10 * (r + 1); });
  const auto used = [&] { return value + 1; };
  const auto refused = ThrowsMessage<WrongContext>(HasSubstr("not inside a replica context"));
  const auto results = strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](const Strategy&) { EXPECT_THAT(used, refused); });
    return used();
  });
  for_each_local(results, [](int r, int result) { EXPECT_EQ(result, 10 * (r + 1) + 1); });
  strategy_.extended().update(made({}), [&](const Variable&) { EXPECT_THAT(used, refused); });
  if (replicas() > 1) {
    EXPECT_THAT(used, refused) << "outside any scope; there, the caller is replica 0 of 1";
  }
  const auto scope = strategy_.scope();
  EXPECT_THAT(used, refused);
}

class RegroupCase : public Replicas {
 protected:
  using Nested = std::tuple<int, std::vector<std::string>, std::map<std::string, std::pair<double, bool>>,
                            std::array<int, 2>>;
  static Nested nested(int r) {
    return {r, {std::string(1, static_cast<char>('a' + r)), "b"}, {{"k", {0.5 * r, r == 0}}}, {r, 10 * r}};
  }
};
COHORT_INSTANTIATE_CASES(RegroupCase);

TEST_P(RegroupCase, Case059_IsTheInverseOfSelection) {
  const auto grouped = regroup(each(nested));
  using Flag = std::remove_cvref_t<decltype(std::get<2>(grouped).at("k").second)>;
  static_assert(std::is_same_v<Flag, PerReplica<bool>>);
  static_assert(!std::is_convertible_v<Flag, Mirrored<bool>>, "a PerReplica does not pass for a Mirrored");
  for_each_local(std::get<0>(grouped), [](int r, int number) { EXPECT_EQ(number, r); });
  for_each_local(std::get<1>(grouped)[0],
                 [](int r, const std::string& text) { EXPECT_EQ(text, std::get<1>(nested(r))[0]); });
  for_each_local(std::get<2>(grouped).at("k").second, [](int r, bool flag) { EXPECT_EQ(flag, r == 0); });
  for_each_local(std::get<3>(grouped)[1], [](int r, int number) { EXPECT_EQ(number, 10 * r); });
  for (int local = 0; local < local_replicas(); ++local)
    EXPECT_EQ(select_replica(static_cast<std::size_t>(local), grouped), nested(first_local() + local));
}

TEST_P(RegroupCase, Case061_OfOneReplicaKeepsTheStructure) {
  if (local_replicas() > 1) GTEST_SKIP() << "for one replica of a process";
  const auto grouped = regroup(each([](int r) { return std::pair{r, std::vector{r + 1, r + 2}}; }));
  const int r = first_local();
  EXPECT_EQ(grouped.first[0], r);
  ASSERT_THAT(grouped.second, SizeIs(2));
  EXPECT_EQ(grouped.second[0][0], r + 1);
  EXPECT_EQ(grouped.second[1][0], r + 2);
}

TEST_P(RegroupCase, Case062_OfOneVariableIsThatVariable) {
  const Variable variable = made({.name = "v"});
  const Variable other = made({.name = "w"});
  EXPECT_EQ(regroup(each([&](int) { return Variable(variable); })), variable);
  for (const Tensor& component : variable.components())
    EXPECT_EQ(strategy_.extended().value_container(component), variable);
  const auto both = each([&](int r) { return r == first_local() ? variable : other; });
  if (local_replicas() == 1) {
    EXPECT_EQ(regroup(both), variable);
  } else {
    EXPECT_THAT([&] { return regroup(both); },
                ThrowsMessage<InvalidArgument>(HasSubstr("different variables, 'v' and 'w'")));
  }
}

}  // namespace
}  // namespace cohort::testing
