// The variables of workers that are ranks.
#include <gtest/gtest.h>

#include "rank_values.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

TEST(VariablesOfRanks, AreMadeTogether) { check_creation(session(), 1); }
TEST(VariablesOfRanks, AreKeptEqualOnWrite) { check_on_write_variables(session(), 1); }
TEST(VariablesOfRanks, AreAggregatedOnRead) { check_on_read_variables(session(), 1); }
TEST(VariablesOfRanks, TakeTheRowsOfAllWorkers) { check_rows(session(), 1); }
TEST(VariablesOfRanks, AreUpdated) { check_updates(session(), 1); }

}  // namespace
}  // namespace cohort::testing
