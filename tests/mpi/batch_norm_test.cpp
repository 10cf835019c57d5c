// Batch normalization of workers that are ranks, with several devices each. LOCAL_DEVICES says how many.
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

TEST(BatchNormOfRanks, IsThatOfAllRows) { check_batch_norm_of_all_rows(session(), devices()); }
TEST(BatchNormOfRanks, HasTheSameBitsInEveryLayout) { check_bits_of_batch_norm(session(), devices()); }
TEST(BatchNormOfRanks, NamesReplicasThatDiffer) { check_batch_norms_that_differ(session(), devices()); }

}  // namespace
}  // namespace cohort::testing
