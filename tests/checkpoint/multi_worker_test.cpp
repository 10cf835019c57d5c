// Checkpoints of workers that are threads of this process.
#include <cohort/checkpoint/checkpoint.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "checkpoint_contract.h"
#include "shared_slots_contract.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

class MultiWorkerCheckpoint : public ::testing::TestWithParam<int> {
 protected:
  template <class Check>
  void on_every_worker(Check check) {
    for_each_worker(GetParam(), [&](Bootstrap& worker) { check(worker, folder_.path().string()); });
  }
  const TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Workers, MultiWorkerCheckpoint, ::testing::Values(1, 2, 3, 4, 7),
                         ::testing::PrintToStringParamName());

TEST_P(MultiWorkerCheckpoint, IsSharedEvenlyAndRestored) {
  on_every_worker([](Bootstrap& worker, const std::string& folder) {
    for (const int devices : {1, 2})
      check_saving_and_restoring(worker, devices, folder + "/" + std::to_string(devices));
  });
}
TEST_P(MultiWorkerCheckpoint, HasTheFirstWorkersOwnState) {
  on_every_worker(check_values_of_the_first_worker);
}
TEST_P(MultiWorkerCheckpoint, FailsOnAllWorkers) { on_every_worker(check_failure_of_one_worker); }
TEST_P(MultiWorkerCheckpoint, HasTheSameValuesOnAllWorkers) { on_every_worker(check_other_values); }
TEST_P(MultiWorkerCheckpoint, IsSavedInTheBackground) { on_every_worker(check_saving_in_background); }
TEST_P(MultiWorkerCheckpoint, HasWhatMetricsHaveSeen) { on_every_worker(check_metrics_in_checkpoints); }
TEST_P(MultiWorkerCheckpoint, HasSharedSlotsAsWholeOnes) {
  on_every_worker([](Bootstrap& worker, const std::string& folder) {
    for (const int devices : {1, 2})
      check_checkpoints_of_shares(worker, devices, folder + "/" + std::to_string(devices));
  });
}
TEST_P(MultiWorkerCheckpoint, FailsOnAllWorkersWhereAValueFails) {
  on_every_worker(check_a_value_that_fails);
}

/// A variable that `savers` workers save and `restorers` workers restore.
TEST_P(MultiWorkerCheckpoint, IsRestoredByOtherNumbersOfWorkers) {
  const std::string folder = folder_.path().string();
  const Tensor values = Tensor::from(std::vector<double>{1, 2, 3, 4, 5, 6, 7});
  for_each_worker(GetParam(), [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
    const auto scope = strategy.scope();
    const Variable variable({.initial_value = values});
    Checkpoint checkpoint(strategy);
    checkpoint.add("v", variable);
    checkpoint.save(folder, 1);
  });
  for (const int restorers : {1, 2, 3, 5}) {
    for_each_worker(restorers, [&](Bootstrap& worker) {
      const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
      const auto scope = strategy.scope();
      const Variable variable({.initial_value = Tensor::zeros({7}, DType::kFloat64)});
      Checkpoint checkpoint(strategy);
      checkpoint.add("v", variable);
      checkpoint.restore(folder + "/step-1").assert_consumed();
      EXPECT_TRUE(bitwise_equal(variable.read(), values));
    });
  }
}

}  // namespace
}  // namespace cohort::testing
