// Packed collectives over ranks.
#include "communicator_contracts.h"

#include <gtest/gtest.h>

#include "mpi_main.h"

namespace cohort::testing {
namespace {

std::unique_ptr<Communicator> make_communicator() {
  return session().make_communicator({.timeout_seconds = 20});
}

TEST(MpiPacking, ReducesBatchesLikeTensorsOneByOne) { check_batches(*make_communicator()); }
TEST(MpiPacking, NoticesBatchesThatDiffer) { check_batch_mismatch(*make_communicator()); }
TEST(MpiPacking, ReducesBucketsLikeTensorsOneByOne) { check_buckets(*make_communicator()); }
TEST(MpiPacking, RefusesWrongAnnouncements) { check_bucket_arguments(*make_communicator()); }
TEST(MpiPacking, NamesWhoDescribesOtherGradients) { check_bucket_mismatch(*make_communicator()); }
TEST(MpiPacking, TakesNoMemoryAfterTheFirstSteps) { check_memory_stays(*make_communicator()); }
TEST(MpiPacking, SplitsHugeTensors) {
  if (session().size() > 3) GTEST_SKIP() << "would take much memory";
  check_huge_tensors(*make_communicator());
}

}  // namespace
}  // namespace cohort::testing
