// The variables of workers that are threads of this process.
#include <gmock/gmock.h>

#include "fake_cluster.h"
#include "strategies.h"
#include "variable_contract.h"

namespace cohort::testing {
namespace {

class MultiWorkerVariables : public ::testing::TestWithParam<int> {
 protected:
  static void on_every_worker(void (*check)(Bootstrap& worker, int devices)) {
    for (const int devices : {1, 2, 3})
      for_each_worker(GetParam(), [&](Bootstrap& worker) { check(worker, devices); });
  }
};
COHORT_INSTANTIATE_REPLICAS(MultiWorkerVariables);

TEST_P(MultiWorkerVariables, AreMadeTogether) { on_every_worker(check_creation); }
TEST_P(MultiWorkerVariables, AreKeptEqualOnWrite) { on_every_worker(check_on_write_variables); }
TEST_P(MultiWorkerVariables, AreAggregatedOnRead) { on_every_worker(check_on_read_variables); }
TEST_P(MultiWorkerVariables, TakeTheRowsOfAllWorkers) { on_every_worker(check_rows); }
TEST_P(MultiWorkerVariables, AreUpdated) { on_every_worker(check_updates); }

}  // namespace
}  // namespace cohort::testing
