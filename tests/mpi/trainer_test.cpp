// A Trainer over the ranks of the job.
#include <gtest/gtest.h>

#include "rank_values.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

TEST(TrainerOfRanks, TrainsAsOneReplica) { check_fit(session(), 1); }
TEST(TrainerOfRanks, TrainsAsOneReplicaWithTwoDevicesEach) { check_fit(session(), 2); }
TEST(TrainerOfRanks, NamesTheRankWhoseStepThrows) { check_step_that_throws(session(), 1); }
TEST(TrainerOfRanks, NamesTheRankWhoseCallbackThrows) { check_callback_that_throws(session(), 1); }
TEST(TrainerOfRanks, NamesTheRankWhoseMetricThrows) { check_metric_that_throws(session(), 1); }
TEST(TrainerOfRanks, NamesTheRankWhoseDatasetThrows) { check_dataset_that_throws(session(), 1); }

}  // namespace
}  // namespace cohort::testing
