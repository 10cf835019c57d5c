// Very many all-reduces over ranks.
#include "communicator_contracts.h"

#include <gtest/gtest.h>

#include "mpi_main.h"

namespace cohort::testing {
namespace {

TEST(MpiSoak, SmallAllReduces) { soak_small(*session().make_communicator({}), small_soak_rounds()); }
TEST(MpiSoak, LargeAllReduces) { soak_large(*session().make_communicator({}), large_soak_rounds()); }

}  // namespace
}  // namespace cohort::testing
