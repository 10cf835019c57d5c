// The variables of workers that are ranks.
#include <gtest/gtest.h>

#include "rank_values.h"
#include "variable_contract.h"

namespace cohort::testing {
namespace {

TEST(VariablesOfRanks, AreMadeTogether) { check_creation(session()); }
TEST(VariablesOfRanks, AreKeptEqualOnWrite) { check_on_write_variables(session()); }
TEST(VariablesOfRanks, AreAggregatedOnRead) { check_on_read_variables(session()); }
TEST(VariablesOfRanks, TakeTheRowsOfAllWorkers) { check_rows(session()); }
TEST(VariablesOfRanks, AreUpdated) { check_updates(session()); }

}  // namespace
}  // namespace cohort::testing
