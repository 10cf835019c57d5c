// Collectives of workers whose memory is limited, or whose heap is switched off; limited_memory.sh sets
// the limits.
#include <gtest/gtest.h>

#include "communicator_contracts.h"
#include "rank_values.h"

namespace cohort::testing {
namespace {

TEST(LimitedMemory, Reductions) { check_reductions(*make_communicator()); }
TEST(LimitedMemory, SizesAndMemory) { check_sizes_and_memory(*make_communicator()); }
TEST(LimitedMemory, Messages) { check_messages(*make_communicator()); }
TEST(LimitedMemory, Async) { check_async(*make_communicator()); }

}  // namespace
}  // namespace cohort::testing
