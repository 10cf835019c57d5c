// Workers that are ranks, of which one makes another collective than the others.
#include <gtest/gtest.h>

#include "rank_values.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

TEST(IdentityOfRanks, OfEveryCollectiveIsCompared) {
  check_odd_workers(session(), 1, {.every = 11, .are_known = true});
}
TEST(IdentityOfRanks, OfVariablesHasTheirNames) { check_variable_names(session(), 1); }
TEST(IdentityOfRanks, OfDatasetsIsCompared) { check_odd_datasets(session(), 1); }

}  // namespace
}  // namespace cohort::testing
