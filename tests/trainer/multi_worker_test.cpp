// A Trainer of workers that are threads of this process.
#include "../strategy/fake_cluster.h"
#include "trainer_contract.h"

namespace cohort::testing {
namespace {

class MultiWorkerTrainer : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  template <class Check>
  static void on_every_worker(Check check) {
    const auto [workers, devices] = GetParam();
    for_each_worker(workers, [&](Bootstrap& worker) { check(worker, devices); });
  }
};
INSTANTIATE_TEST_SUITE_P(WorkersAndDevices, MultiWorkerTrainer,
                         ::testing::Values(std::pair{1, 1}, std::pair{2, 1}, std::pair{3, 1}, std::pair{2, 2},
                                           std::pair{4, 1}, std::pair{5, 1}));

TEST_P(MultiWorkerTrainer, TrainsAsOneReplica) { on_every_worker(check_fit); }
TEST_P(MultiWorkerTrainer, NamesTheWorkerWhoseStepThrows) { on_every_worker(check_step_that_throws); }
TEST_P(MultiWorkerTrainer, NamesTheWorkerWhoseCallbackThrows) { on_every_worker(check_callback_that_throws); }
TEST_P(MultiWorkerTrainer, NamesTheWorkerWhoseMetricThrows) { on_every_worker(check_metric_that_throws); }
TEST_P(MultiWorkerTrainer, NamesTheWorkerWhoseDatasetThrows) { on_every_worker(check_dataset_that_throws); }

}  // namespace
}  // namespace cohort::testing
