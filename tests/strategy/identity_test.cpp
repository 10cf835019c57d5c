// Replicas, and workers that are threads, of which one makes another collective than the others.
#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/value/variable.h>

#include "fake_cluster.h"
#include "identity_contract.h"

namespace cohort::testing {
namespace {

TEST(Identity, OfEveryCollectiveIsComparedAmongReplicas) {
  for (const int replicas : {2, 3}) check_odd_replicas(replicas);
}

class IdentityOfWorkers : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  static void on_every_worker(void (*check)(Bootstrap& worker, int devices)) {
    const auto [workers, devices] = GetParam();
    for_each_worker(workers, [=](Bootstrap& worker) { check(worker, devices); });
  }
};
INSTANTIATE_TEST_SUITE_P(WorkersAndDevices, IdentityOfWorkers,
                         ::testing::Values(std::pair(2, 1), std::pair(3, 1), std::pair(2, 2)));

TEST_P(IdentityOfWorkers, OfEveryCollectiveIsCompared) {
  on_every_worker([](Bootstrap& worker, int devices) {
    check_odd_workers(worker, devices, {.every = devices == 1 ? 1 : 5});
  });
}
TEST_P(IdentityOfWorkers, OfVariablesHasTheirNames) { on_every_worker(check_variable_names); }
TEST_P(IdentityOfWorkers, OfDatasetsIsCompared) { on_every_worker(check_odd_datasets); }

// The classic mistake: the chief reads what only all can read, for example to log it.
TEST(LoneReader, IsToldWhatItWaitsFor) {
  for_each_worker(2, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
    const auto scope = strategy.scope();
    const Variable accuracy({.name = "accuracy",
                             .synchronization = VariableSynchronization::kOnRead,
                             .aggregation = VariableAggregation::kMean});
    if (worker.rank() == 0) {
      EXPECT_THAT([&] { return accuracy.read(); },
                  ::testing::ThrowsMessage<Aborted>(
                      ::testing::AllOf(::testing::HasSubstr("which reads accuracy, for members that left"),
                                       ::testing::HasSubstr("without making this call: worker "))));
    }
  });
}

TEST(ValueOfAWorker, IsNoOperandOutsideReplicas) {
  for_each_worker(2, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
    const auto losses = strategy.run([] { return 1.0F; });
    EXPECT_THROW(static_cast<void>(losses + 1.0F), WrongContext);
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, losses), 2.0F);
  });
}

}  // namespace
}  // namespace cohort::testing
