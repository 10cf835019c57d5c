// What `run` hands to replicas, and what it makes of their results.
#include <map>
#include <string>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace cohort::testing
