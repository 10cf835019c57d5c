// Collectives in flight on several communicators over MPI at once, in random order.
#include "communicator_contracts.h"

#include <vector>

#include <gtest/gtest.h>

#include "mpi_main.h"

namespace cohort::testing {
namespace {

void run_seeds(WaitOrder order) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::vector<std::unique_ptr<Communicator>> communicators;
    communicators.reserve(2);
    for (int i = 0; i < 2; ++i) communicators.push_back(session().make_communicator({}));
    add_groups(communicators);
    check_interleaved(communicators, seed, order);
  }
}

TEST(MpiInterleavings, WaitedForInTheSameOrder) { run_seeds(WaitOrder::kSame); }
TEST(MpiInterleavings, PolledInAnyOrder) { run_seeds(WaitOrder::kPolled); }

TEST(MpiInterleavings, WaitedForInAnyOrder) { run_seeds(WaitOrder::kOwn); }

}  // namespace
}  // namespace cohort::testing
