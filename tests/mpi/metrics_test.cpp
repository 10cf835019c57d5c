// Metrics and losses over the ranks of the job.
#include <gtest/gtest.h>

#include "rank_values.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

TEST(MetricsOfRanks, AddUpAllReplicas) { check_metrics(session(), 1); }
TEST(MetricsOfRanks, AddUpInSets) { check_metric_sets(session(), 1); }
TEST(MetricsOfRanks, ReduceLosses) { check_reduced_losses(session(), 1); }

}  // namespace
}  // namespace cohort::testing
