// The variables of workers that are threads of this process.
#include <gmock/gmock.h>

#include "fake_cluster.h"
#include "strategies.h"
#include "variable_contract.h"

namespace cohort::testing {
namespace {

class MultiWorkerVariables : public ::testing::TestWithParam<int> {};
COHORT_INSTANTIATE_REPLICAS(MultiWorkerVariables);

TEST_P(MultiWorkerVariables, AreMadeTogether) { for_each_worker(GetParam(), check_creation); }
TEST_P(MultiWorkerVariables, AreKeptEqualOnWrite) { for_each_worker(GetParam(), check_on_write_variables); }
TEST_P(MultiWorkerVariables, AreAggregatedOnRead) { for_each_worker(GetParam(), check_on_read_variables); }
TEST_P(MultiWorkerVariables, TakeTheRowsOfAllWorkers) { for_each_worker(GetParam(), check_rows); }
TEST_P(MultiWorkerVariables, AreUpdated) { for_each_worker(GetParam(), check_updates); }

}  // namespace
}  // namespace cohort::testing
