// Shared optimizers of workers that are ranks, with several devices each. LOCAL_DEVICES says how many.
#include <cstdlib>

#include <gtest/gtest.h>

#include "mpi_main.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

int devices() {
  const char* text = std::getenv("LOCAL_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

TEST(SharesOfRanks, HaveTheBitsOfTheOptimizerAlone) { check_bits_of_shares(session(), devices(), true); }
TEST(SharesOfRanks, DivideTheSlots) { check_slots_of_shares(session(), devices()); }
TEST(SharesOfRanks, NameTheOddReplica) { check_odd_shares(session(), devices()); }

}  // namespace
}  // namespace cohort::testing
