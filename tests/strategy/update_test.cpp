// update: a function is called once per component of a variable, in update context.
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include <cohort/strategy/one_device_strategy.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

void add(const Variable& variable, const Tensor& value) { variable.assign_add(value); }

class Update : public WithReplicas {
 protected:
  [[nodiscard]] Variable one(VariableAggregation aggregation = VariableAggregation::kNone) const {
    return variable_in(strategy_,
                       {.name = "v", .initial_value = Tensor::scalar(1.0), .aggregation = aggregation});
  }
  /// r+1 on replica r.
  [[nodiscard]] PerReplica<Tensor> counted() const {
    return per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  }
  [[nodiscard]] std::vector<double> from(double first) const {
    std::vector<double> values(static_cast<std::size_t>(replicas()));
    std::iota(values.begin(), values.end(), first);
    return values;
  }
  StrategyExtended& extended_ = strategy_.extended();
};
COHORT_INSTANTIATE_REPLICAS(Update);

TEST_P(Update, CallsTheFunctionOncePerComponentInUpdateContext) {
  std::vector<int> updated;
  extended_.update(one(), [&](const Variable&) {
    EXPECT_EQ(get_strategy(), strategy_);
    EXPECT_TRUE(has_strategy());
    EXPECT_TRUE(in_cross_replica_context());
    EXPECT_EQ(get_replica_context(), nullptr);
    ASSERT_TRUE(get_update_replica_id());
    EXPECT_EQ(current_device(), Device::cpu(*get_update_replica_id()));
    updated.push_back(*get_update_replica_id());
  });
  ASSERT_THAT(updated, SizeIs(replicas()));
  for (int id = 0; id < replicas(); ++id) EXPECT_EQ(updated[static_cast<std::size_t>(id)], id);
  EXPECT_EQ(get_update_replica_id(), std::nullopt);
}

TEST_P(Update, ChangesAndReadsTheComponentAlone) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable variable = one(aggregation);
    extended_.update(variable, [](const Variable& v) {
      EXPECT_EQ(v.assign(*get_update_replica_id() + 5).read().item<int>(), *get_update_replica_id() + 5);
      EXPECT_EQ(&v.replica_component(), &v.components()[static_cast<std::size_t>(*get_update_replica_id())]);
    });
    EXPECT_EQ(components(variable), from(5)) << to_string(aggregation);
  }
}

TEST_P(Update, HandsOutComponentsOfDistributedArguments) {
  const Variable variable = one();
  extended_.update(variable, add, counted());
  EXPECT_EQ(components(variable), from(2));
  extended_.update(
      variable, [](const Variable& v, const std::vector<Tensor>& values) { v.assign(values[1]); },
      std::vector{counted(), counted()});
  EXPECT_EQ(components(variable), from(1));
}

TEST_P(Update, TakesMirroredAndPlainArgumentsForEveryComponent) {
  const Variable variable = one(VariableAggregation::kSum);
  const Tensor sum = strategy_.reduce(ReduceOp::kSum, counted());
  extended_.update(variable, add, sum);
  EXPECT_THAT(components(variable), Each(1 + sum_to(replicas())));
  extended_.update(variable, add,
                   Mirrored(std::vector(static_cast<std::size_t>(replicas()), Tensor::scalar(2.0))));
  EXPECT_THAT(components(variable), Each(3 + sum_to(replicas())));
}

TEST_P(Update, ReturnsMirroredResults) {
  const auto doubled = extended_.update(
      one(), [](const Variable&, const Tensor& x) { return 2 * x.item<double>(); }, counted());
  const std::vector<double> values = strategy_.local_results(doubled);
  ASSERT_THAT(values, SizeIs(replicas()));
  for (int id = 0; id < replicas(); ++id) EXPECT_EQ(values[static_cast<std::size_t>(id)], 2 * (id + 1));
  EXPECT_EQ(doubled + 1, 3) << "usable outside replicas";
}

TEST_P(Update, ChangesTheComponentsOfOtherVariablesOneByOne) {
  const Variable updated = one();
  const Variable other = one();
  extended_.update(
      updated, [&](const Variable&, const Tensor& value) { other.assign(value); }, counted());
  EXPECT_THAT(components(updated), Each(1));
  EXPECT_EQ(components(other), from(1));
}

TEST_P(Update, MayBeNested) {
  const Variable outer = one();
  const Variable inner = one();
  extended_.update(outer, [&](const Variable&) {
    extended_.update(inner, [](const Variable& v) { v.assign_add(1.0); });
    outer.assign_add(1.0);
  });
  EXPECT_THAT(components(outer), Each(2)) << "the outer context is back";
  EXPECT_THAT(components(inner), Each(1 + replicas()));
}

TEST_P(Update, FromAReplicaIsAMergeCall) {
  const Variable variable = one();
  const auto results = strategy_.run([&](ReplicaContext& replica) {
    const auto id = replica.replica_id_in_sync_group();
    const auto whole = extended_.update(
        variable,
        [](const Variable& v, const Tensor& value) {
          v.assign_add(value);
          return *get_update_replica_id();
        },
        Tensor::scalar(id + 1.0));
    return whole + 0;
  });
  EXPECT_EQ(components(variable), from(2));
  for (int id = 0; id < replicas(); ++id)
    EXPECT_EQ(results[static_cast<std::size_t>(id)], id) << "each replica sees its component of the result";
}

TEST_P(Update, FromAReplicaSpeaksForItsComponentsOfDistributedValues) {
  const Variable variable = one();
  const auto values = counted();
  strategy_.run([&] { extended_.update(variable, add, values); });
  EXPECT_EQ(components(variable), from(2));
}

TEST_P(Update, RefusesArgumentsThatWouldMakeAggregatedComponentsDiffer) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    if (aggregation == VariableAggregation::kNone) continue;
    const Variable variable = one(aggregation);
    const auto updating = [&] { extended_.update(variable, add, counted()); };
    if (replicas() == 1) {
      EXPECT_NO_THROW(updating());
      continue;
    }
    EXPECT_THAT(updating, ThrowsMessage<InvalidArgument>(
                              AllOf(HasSubstr("'v' with a PerReplica argument whose components differ"),
                                    HasSubstr(std::string(to_string(aggregation))))));
    EXPECT_THAT(components(variable), Each(1));
    extended_.update(variable, add, per_replica(strategy_, [](int) { return Tensor::scalar(2.0); }));
    EXPECT_THAT(components(variable), Each(3)) << "equal ones are fine";
    const auto nans = per_replica(strategy_, [](int) { return std::nan(""); });
    EXPECT_NO_THROW(extended_.update(
        variable, [](const Variable&, double) {}, nans));
  }
}

struct Gradient {
  Tensor slope;
  std::optional<Tensor> momentum;
};
COHORT_FIELDS(Gradient, slope, momentum)

TEST_P(Update, RefusesThemAlsoInsideOfStructures) {
  const Variable variable = one(VariableAggregation::kSum);
  const auto ignore = [](const Variable&, const auto&) {};
  const auto check = [&](const auto& of_replica) {
    const auto updating = [&](bool alike) {
      strategy_.run([&](ReplicaContext& replica) {
        const int id = replica.replica_id_in_sync_group();
        extended_.update(variable, ignore, of_replica(Tensor::scalar(alike ? 0 : id)));
      });
    };
    EXPECT_NO_THROW(updating(true));
    if (replicas() == 1) return;
    EXPECT_THAT([&] { updating(false); },
                ThrowsMessage<InvalidArgument>(HasSubstr("whose components differ")));
  };
  check([](const Tensor& x) { return std::tuple(1, x); });
  check([](const Tensor& x) { return std::pair(1, x); });
  check([](const Tensor& x) { return std::array{x}; });
  check([](const Tensor& x) { return std::vector{x}; });
  check([](const Tensor& x) { return std::map<std::string, Tensor>{{"x", x}}; });
  check([](const Tensor& x) { return std::optional(x); });
  check([](const Tensor& x) { return TensorOrSlices(x); });
  check([](const Tensor& x) { return Gradient{x, {}}; });
  check([](const Tensor& x) { return Gradient{Tensor::scalar(1), x}; });

  const auto updating = [&](const auto& values) {
    return [&] { extended_.update(variable, ignore, values); };
  };
  if (replicas() == 1) return;
  EXPECT_THAT(updating(std::vector{counted()}),
              ThrowsMessage<InvalidArgument>(HasSubstr("whose components differ")));
}

TEST_P(Update, RefusesArgumentsOfAStrategyWithOtherReplicas) {
  const PerReplica foreign(
      std::vector<Tensor>(static_cast<std::size_t>(replicas()) + 1, Tensor::scalar(1.0)));
  EXPECT_THAT([&] { extended_.update(one(), add, foreign); },
              ThrowsMessage<InvalidArgument>(HasSubstr("belongs to another strategy")));
}

TEST_P(Update, RefusesVariablesThatAreNotOfThisStrategy) {
  const Variable plain({.name = "p"});
  EXPECT_THAT([&] { extended_.update(plain, [](const Variable&) {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("plain variable 'p'")));
  const OneDeviceStrategy other;
  const Variable foreign = variable_in(other, {.name = "f"});
  EXPECT_THAT([&] { extended_.update(foreign, [](const Variable&) {}); },
              ThrowsMessage<WrongContext>(HasSubstr("mixing different strategies")));
  const auto scope = other.scope();
  EXPECT_THROW(extended_.update(one(), [](const Variable&) {}), WrongContext);
}

TEST_P(Update, LeavesTheContextWhenTheFunctionThrows) {
  EXPECT_THROW(extended_.update(one(), [](const Variable&) { throw std::out_of_range("no"); }),
               std::out_of_range);
  EXPECT_FALSE(has_strategy());
}

TEST_P(Update, HasNoUseForPerReplicaOperandsOrReplicaFunctions) {
  const auto values = counted();
  extended_.update(one(), [&](const Variable& v) {
    EXPECT_THROW(v.assign(values), WrongContext);
    EXPECT_EQ(get_replica_context(), nullptr);
  });
}

TEST_P(Update, OfNoSlotCallsTheFunctionOncePerDevice) {
  const auto results = extended_.update_non_slot(
      extended_.non_slot_devices(),
      [](const Tensor& x) { return std::pair(*current_device(), x.item<int>()); }, counted());
  ASSERT_THAT(results.components(), SizeIs(replicas()));
  for (int id = 0; id < replicas(); ++id)
    EXPECT_EQ(results[static_cast<std::size_t>(id)], std::pair(Device::cpu(id), id + 1));

  const Device last_one[] = {Device::cpu(last())};
  int calls = 0;
  extended_.update_non_slot(last_one, [&] {
    EXPECT_EQ(get_update_replica_id(), last());
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  const Device elsewhere[] = {Device::cpu(99)};
  EXPECT_THROW(extended_.update_non_slot(elsewhere, [] {}), InvalidArgument);
  strategy_.run([&] { EXPECT_THROW(extended_.update_non_slot(last_one, [] {}), WrongContext); });
}

TEST(UpdateOfOneDevice, IsOneCallForTheVariable) {
  const OneDeviceStrategy strategy;
  const Variable variable = variable_in(strategy, {.initial_value = Tensor::scalar(1.0)});
  const PerReplica value(std::vector{Tensor::scalar(4.0)});
  const auto results = strategy.extended().update(
      variable,
      [](const Variable& v, const Tensor& x) {
        EXPECT_TRUE(in_cross_replica_context());
        EXPECT_EQ(get_update_replica_id(), 0);
        return v.assign_add(x).read().item<double>();
      },
      value);
  EXPECT_THAT(results.components(), ElementsAre(5));
  const Variable plain({.initial_value = Tensor::scalar(1.0)});
  strategy.extended().update(plain, add, value);
  EXPECT_EQ(plain.read().item<double>(), 5) << "a plain variable has one component as well";
}

TEST(UpdateOfTheDefaultStrategy, LeavesTheContextAsItIs) {
  const Variable variable({.initial_value = Tensor::scalar(1.0)});
  const auto results = get_strategy().extended().update(variable, [](const Variable& v) {
    EXPECT_FALSE(in_cross_replica_context());
    EXPECT_NE(get_replica_context(), nullptr);
    EXPECT_EQ(get_update_replica_id(), std::nullopt);
    return v.assign_add(2.0).read().item<double>();
  });
  EXPECT_THAT(results.components(), ElementsAre(3));
  EXPECT_EQ(get_strategy()
                .extended()
                .update_non_slot(get_strategy().extended().non_slot_devices(), [] { return 7; })
                .size(),
            1u);
}

}  // namespace
}  // namespace cohort::testing
