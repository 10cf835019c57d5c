// COHORT_CHECK_BUFFERS=true under MPI, whatever carries the collectives.
#include <gtest/gtest.h>

#include "communicator_contracts.h"
#include "rank_values.h"

namespace cohort::testing {
namespace {

TEST(BufferChecks, NameWhoChangedATensor) { check_changed_tensors(*make_communicator()); }
TEST(BufferChecks, LeaveReductionsAsTheyAre) { check_reductions(*make_communicator()); }
TEST(BufferChecks, LeaveMovedDataAsItIs) { check_data_movement(*make_communicator()); }
TEST(BufferChecks, LeaveMessagesAsTheyAre) { check_messages(*make_communicator()); }
TEST(BufferChecks, LetManyBeInFlight) { check_async(*make_communicator()); }
TEST(BufferChecks, FinishDroppedWorks) { check_dropped_works(make_communicator()); }

}  // namespace
}  // namespace cohort::testing
