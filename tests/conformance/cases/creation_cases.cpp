// Variables that replicas make, and moving averages.
#include <mutex>
#include <set>
#include <string>

#include <cohort/train/moving_average.h>
#include <cohort/value/variable_creator_scope.h>

#include "replicas.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

// Variables that replicas make. The replicas of one worker make one variable together; workers
// make it at the same time, and by the same name.

using ::testing::AllOf;
using ::testing::HasSubstr;

class CreationCase : public Replicas {};
COHORT_INSTANTIATE_CASES(CreationCase);

VariableCreator renaming(const std::string& prefix) {
  return [prefix](const NextCreator& next, VariableOptions options) {
    options.name = prefix + options.name;
    return next(std::move(options));
  };
}

TEST_P(CreationCase, Case026_CreatorsStartWithThoseOfTheCallerAndAreEachReplicasOwn) {
  std::mutex mutex;
  std::multiset<std::string> asked;
  const VariableCreatorScope of_caller([&](const NextCreator& next, VariableOptions options) {
    options.name = "main:" + options.name;
    {
      const std::lock_guard lock(mutex);
      asked.insert(options.name);
    }
    return next(std::move(options));
  });
  const auto thread = [](int r) { return "thread_" + std::to_string(r); };
  const auto names = strategy_.run([&](ReplicaContext& replica) {
    const VariableCreatorScope own(renaming(thread(replica.replica_id_in_sync_group())));
    const Variable variable({.name = ""});
    replica.merge_call([](const Strategy&) {
      EXPECT_EQ(Variable({.name = "merged"}).name(), "main:merged") << "a merge is inside no replica";
    });
    return variable.name();
  });
  std::multiset<std::string> wanted{"main:merged"};
  for_each_local(names, [&](int r, const std::string& name) {
    EXPECT_EQ(name, "main:" + thread(first_local()));
    wanted.insert("main:" + thread(r));
  });
  EXPECT_EQ(asked, wanted);
}

TEST_P(CreationCase, Case037_NamesThatDifferAreAnErrorThatNamesBoth) {
  const auto letter = [](int r) { return std::string(1, static_cast<char>('a' + r)); };
  const auto make = [&](bool may_differ) {
    return each([&](int r) { return Variable({.name = letter(r), .name_may_differ = may_differ}); });
  };
  for_each_local(make(true), [&](int, const Variable& variable) {
    EXPECT_EQ(variable.name(), letter(first_local())) << "of the first local replica";
  });
  if (replicas() == 1) return;  // nobody to differ from
  const auto makes = [&](int r) { return "makes variable " + letter(r) + " "; };
  const int other = local_replicas() == 1 ? (first_local() + 1) % replicas() : first_local() + 1;
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { return make(false); }),
              AllOf(HasSubstr(makes(first_local())), HasSubstr(makes(other))));
}

TEST_P(CreationCase, Case037_NamesThatDifferOnOneWorkerAreToldToTheOthers) {
  if (local_replicas() == 1) GTEST_SKIP() << "a worker of one replica cannot differ";
  const int last = replicas() - 1;
  const auto make = [&] { return each([&](int r) { return Variable({.name = r == last ? "b" : "a"}); }); };
  const bool differs = first_local() + local_replicas() == replicas();
  EXPECT_THAT(
      message_of(differs ? ErrorCode::kInvalidArgument : ErrorCode::kAborted, make),
      AllOf(HasSubstr("replica " + std::to_string(last) + " (worker "), HasSubstr("makes variable b ")));
  if (workers() == 1) {
    EXPECT_NO_THROW(static_cast<void>(made({}))) << "the strategy is usable afterwards";
  } else {
    EXPECT_THROW(static_cast<void>(made({})), Aborted) << "of no more use, which nobody waits to hear";
  }
}

TEST_P(CreationCase, Case038_NamesMayDifferInTheirNumber) {
  const auto variables = each([](int r) {
    return Variable({.name = "foo_" + std::to_string(r),
                     .initial_value = Tensor::scalar(r + 5.0),
                     .aggregation = VariableAggregation::kSum});
  });
  const Variable& variable = variables[0];
  for_each_local(variables, [&](int, const Variable& made) { EXPECT_EQ(made, variable); });
  EXPECT_EQ(variable.name(), "foo_" + std::to_string(first_local()));
  expect_components(variable, 5);
  strategy_.run([&] { variable.assign_add(1.0); });
  expect_components(variable, 5 + replicas());
}

// Moving averages.

using ::testing::DoubleNear;
using ::testing::ElementsAre;

class MovingAverageCase : public Replicas {
 protected:
  static void expect(const Variable& average, double first, double second) {
    for (const Tensor& component : average.components())
      EXPECT_THAT(numbers(component), ElementsAre(DoubleNear(first, 1e-12), DoubleNear(second, 1e-12)));
  }
};
COHORT_INSTANTIATE_CASES(MovingAverageCase);

TEST_P(MovingAverageCase, Case101_FollowsTheMeanOfReplicas) {
  const Variable average = made({.initial_value = Tensor::from({10.0, 11.0})});
  strategy_.run([&](ReplicaContext& replica) {
    const int r = replica.replica_id_in_sync_group();
    assign_moving_average(average, Tensor::from({1.0 + r, 2.0 - r}), 0.25);
  });
  const double mean = (replicas() - 1) / 2.0;  // of the replicas' numbers
  expect(average, 2.5 + 0.75 * (1 + mean), 2.75 + 0.75 * (2 - mean));
}

TEST_P(MovingAverageCase, Case103_TakesTheValueAsItIsOutsideReplicas) {
  const Variable average = made({.initial_value = Tensor::from({10.0, 11.0})});
  const auto scope = strategy_.scope();
  assign_moving_average(average, Tensor::from({1.0, 2.0}), 0.25);
  expect(average, 3.25, 4.25);
  assign_moving_average(average, Tensor::from({1.0, 2.0}), 0.25);
  expect(average, 1.5625, 2.5625);
}

TEST_P(MovingAverageCase, Case104_FollowsAVariable) {
  const Variable followed =
      made({.initial_value = Tensor::scalar(1.0), .aggregation = VariableAggregation::kMean});
  const Variable average = made({.initial_value = followed.read()});
  strategy_.run([&] {
    followed.assign(0.5);
    assign_moving_average(average, followed.read(), 0.8);
  });
  for (const Tensor& component : average.components())
    EXPECT_THAT(numbers(component), ElementsAre(DoubleNear(0.9, 1e-12)));
}

}  // namespace
}  // namespace cohort::testing
