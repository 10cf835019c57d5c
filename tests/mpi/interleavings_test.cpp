// Collectives in flight on several communicators over MPI at once, in random order.
#include "interleavings.h"

#include <array>

#include <gtest/gtest.h>

#include "mpi_main.h"

namespace cohort::testing {
namespace {

void run_seeds(WaitOrder order) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::array<std::unique_ptr<Communicator>, 3> communicators;
    for (auto& communicator : communicators) communicator = session().make_communicator({});
    check_interleaved(communicators, seed, order);
  }
}

TEST(MpiInterleavings, WaitedForInTheSameOrder) { run_seeds(WaitOrder::kSame); }
TEST(MpiInterleavings, PolledInAnyOrder) { run_seeds(WaitOrder::kPolled); }

// While it waits, a communicator over MPI drives its own calls only. So members that wait for
// different communicators wait for one another, until a deadline passes. To be enabled with a
// communicator whose progress does not depend on what is waited for.
TEST(MpiInterleavings, DISABLED_WaitedForInAnyOrder) { run_seeds(WaitOrder::kOwn); }

}  // namespace
}  // namespace cohort::testing
