// Strategy::run: which replicas run, where, with which arguments, and with which results.
#include <barrier>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include <cohort/value/structure.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class Run : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(Run);

std::vector<int> first_numbers(int count) {
  std::vector<int> result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

TEST_P(Run, CallsTheFunctionOncePerReplicaInOrderOfTheResults) {
  const auto ids = strategy_.run([](ReplicaContext& replica) { return replica.replica_id_in_sync_group(); });
  EXPECT_EQ(std::vector(ids.components().begin(), ids.components().end()), first_numbers(replicas()));
}

TEST_P(Run, TellsEachReplicaItsDevice) {
  const auto devices = strategy_.run([](ReplicaContext& replica) { return replica.device(); });
  for (std::size_t replica = 0; replica < devices.size(); ++replica) {
    EXPECT_EQ(devices[replica], Device::cpu(static_cast<int>(replica)));
  }
}

TEST_P(Run, TakesAFunctionWithoutAContext) {
  const auto results = strategy_.run([] { return 5; });
  EXPECT_THAT(results.components(), AllOf(SizeIs(replicas()), Each(5)));
}

TEST_P(Run, HandsEachReplicaItsOwnComponentAndEverythingElseAsItIs) {
  const auto own = per_replica(strategy_, [](int id) { return 10 * id; });
  const std::vector<int> shared{1, 2};
  const auto sums = strategy_.run(
      [&](ReplicaContext& replica, int mine, const std::vector<int>& plain) {
        EXPECT_EQ(&plain, &shared) << "plain arguments are not copied";
        return mine + plain[1] + replica.replica_id_in_sync_group();
      },
      own, shared);
  for (std::size_t replica = 0; replica < sums.size(); ++replica) {
    EXPECT_EQ(sums[replica], 11 * static_cast<int>(replica) + 2);
  }
  const auto without_context = strategy_.run([](int mine) { return mine; }, own);
  EXPECT_THAT(without_context.components(), ::testing::ElementsAreArray(own.components()));
}

TEST_P(Run, HandsTensorsOnWithoutACopy) {
  const auto tensors = per_replica(strategy_, [](int) { return Tensor::zeros({3}, DType::kFloat32); });
  strategy_.run([](const Tensor& mine) { mine.fill(1); }, tensors);
  for (const Tensor& tensor : tensors.components()) EXPECT_THAT(numbers(tensor), Each(1));
}

TEST_P(Run, MayReturnNothing) {
  std::mutex mutex;
  std::vector<int> ran;
  strategy_.run([&](ReplicaContext& replica) {
    const std::lock_guard lock(mutex);
    ran.push_back(replica.replica_id_in_sync_group());
  });
  EXPECT_THAT(ran, ::testing::UnorderedElementsAreArray(first_numbers(replicas())));
}

TEST_P(Run, MayReturnWhatCannotBeCopied) {
  const auto results = strategy_.run(
      [](ReplicaContext& replica) { return std::make_unique<int>(replica.replica_id_in_sync_group()); });
  EXPECT_EQ(*results[results.size() - 1], last());
}

TEST_P(Run, MayReturnTruthValues) {
  const auto results =
      strategy_.run([](ReplicaContext& replica) { return replica.replica_id_in_sync_group() == 0; });
  EXPECT_TRUE(results[0]);
  EXPECT_EQ(results[results.size() - 1], replicas() == 1);
}

TEST_P(Run, CopiesAResultThatIsAReference) {
  int shared = 3;
  const auto results = strategy_.run([&]() -> int& { return shared; });
  shared = 4;
  EXPECT_THAT(results.components(), Each(3));
}

TEST_P(Run, MakesAllReplicasRunAtTheSameTime) {
  std::barrier together(replicas());
  for (int round = 0; round < 10; ++round) strategy_.run([&] { together.arrive_and_wait(); });
}

TEST_P(Run, KeepsTheThreadOfEachReplica) {
  const auto thread_ids = [&] { return strategy_.run([] { return std::this_thread::get_id(); }); };
  const auto first = thread_ids();
  EXPECT_THAT(thread_ids().components(), ::testing::ElementsAreArray(first.components()));
  EXPECT_THAT((std::set<std::thread::id>(first.components().begin(), first.components().end())),
              SizeIs(replicas()));
  if (replicas() == 1) {
    EXPECT_EQ(first[0], std::this_thread::get_id()) << "a single replica runs inline";
  } else {
    EXPECT_THAT(first.components(), ::testing::Not(Contains(std::this_thread::get_id())));
  }
}

TEST_P(Run, MayBeCalledAgainAndAgain) {
  int total = 0;
  for (int round = 0; round < 100; ++round) {
    const auto ids = per_replica(strategy_, [](int id) { return id; });
    for (const int id : ids.components()) total += id;
  }
  EXPECT_EQ(total, 100 * sum_to(replicas() - 1));
}

TEST_P(Run, RefusesAValueOfAStrategyWithOtherReplicas) {
  const PerReplica foreign(std::vector<int>(static_cast<std::size_t>(replicas()) + 1));
  EXPECT_THAT(
      [&] { strategy_.run([](int) {}, foreign); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("belongs to another strategy"),
                                           HasSubstr(std::to_string(replicas()) + " local replicas"))));
}

TEST_P(Run, RefusesOneAlsoInsideOfAStructure) {
  const PerReplica foreign(std::vector<int>(static_cast<std::size_t>(replicas()) + 1));
  const auto refused = ThrowsMessage<InvalidArgument>(HasSubstr("belongs to another strategy"));
  const auto ignore = [](const auto&) {};
  EXPECT_THAT([&] { strategy_.run(ignore, std::tuple(1, foreign)); }, refused);
  EXPECT_THAT([&] { strategy_.run(ignore, std::vector{std::optional(foreign)}); }, refused);
  EXPECT_THAT(
      [&] {
        strategy_.run(ignore, std::map<int, std::array<PerReplica<int>, 1>>{{1, {foreign}}});
      },
      refused);
  EXPECT_THAT([&] { static_cast<void>(strategy_.local_results(std::vector{foreign})); }, refused);
}

TEST_P(Run, GivesLocalResultsAsAList) {
  const auto own = per_replica(strategy_, [](int id) { return id; });
  EXPECT_EQ(strategy_.local_results(own), first_numbers(replicas()));
  EXPECT_THAT(strategy_.local_results(3.5), ElementsAre(3.5));
  EXPECT_THAT(strategy_.local_results(std::vector{1, 2}), AllOf(SizeIs(replicas()), Each(std::vector{1, 2})));
}

TEST_P(Run, GivesLocalResultsOfStructuresAsOneStructurePerReplica) {
  const auto own = per_replica(strategy_, [](int id) { return id; });
  const auto results = strategy_.local_results(std::pair{own, 5});
  ASSERT_THAT(results, SizeIs(replicas()));
  for (int id = 0; id < replicas(); ++id) EXPECT_EQ(results[static_cast<std::size_t>(id)], std::pair(id, 5));
}

TEST_P(Run, HandsOutComponentsFromInsideOfStructures) {
  const auto own = per_replica(strategy_, [](int id) { return id + 1; });
  const std::map<std::string, std::vector<PerReplica<int>>> nested{{"a", {own, own}}};
  const auto sums = strategy_.run(
      [](const std::map<std::string, std::vector<int>>& mine, const std::pair<int, double>& pair) {
        return mine.at("a")[0] + mine.at("a")[1] + pair.first;
      },
      nested, std::pair{own, 0.5});
  for (int id = 0; id < replicas(); ++id) EXPECT_EQ(sums[static_cast<std::size_t>(id)], 3 * (id + 1));
}

TEST_P(Run, HandsOutComponentsOfMirroredValues) {
  const auto own = Mirrored(strategy_.local_results(per_replica(strategy_, [](int id) { return id; })));
  const auto results = strategy_.run([](int mine) { return mine; }, own);
  for (int id = 0; id < replicas(); ++id) EXPECT_EQ(results[static_cast<std::size_t>(id)], id);
}

TEST_P(Run, StartsEachReplicaOnItsDevice) {
  const DeviceScope elsewhere(Device::cpu(9));
  strategy_.run([](ReplicaContext& replica) {
    EXPECT_EQ(current_device(), replica.device());
    const DeviceScope inner(Device::cpu(8));
    EXPECT_EQ(current_device(), Device::cpu(8));
  });
  EXPECT_EQ(current_device(), Device::cpu(9));
}

TEST_P(Run, MakesOneValuePerReplicaFromAFunction) {
  const auto values = strategy_.distribute_values_from_function([&](const ValueContext& context) {
    EXPECT_EQ(context.num_replicas_in_sync, replicas());
    return 10 * context.replica_id_in_sync_group;
  });
  ASSERT_THAT(values.components(), SizeIs(replicas()));
  for (int id = 0; id < replicas(); ++id) EXPECT_EQ(values[static_cast<std::size_t>(id)], 10 * id);
  strategy_.run([&] {
    EXPECT_THROW(strategy_.distribute_values_from_function([](ValueContext) { return 1; }), WrongContext);
  });
}

TEST_P(Run, MakesPerReplicaValuesOperands) {
  const auto own = per_replica(strategy_, [](int id) { return id; });
  strategy_.run([&](ReplicaContext& replica) { EXPECT_EQ(own.local(), replica.replica_id_in_sync_group()); });
  const auto scope = strategy_.scope();
  EXPECT_THROW(static_cast<void>(own.local()), WrongContext);
}

}  // namespace
}  // namespace cohort::testing
