// Metrics and losses over the ranks of the job.
#include <gtest/gtest.h>

#include "metric_contract.h"
#include "rank_values.h"

namespace cohort::testing {
namespace {

TEST(MetricsOfRanks, AddUpAllReplicas) { check_metrics(session(), 1); }
TEST(MetricsOfRanks, AddUpInSets) { check_metric_sets(session(), 1); }
TEST(MetricsOfRanks, ReduceLosses) { check_reduced_losses(session(), 1); }

}  // namespace
}  // namespace cohort::testing
