// Very many all-reduces over members that are threads.
#include "communicator_contracts.h"

#include <gtest/gtest.h>

#include "members.h"

namespace cohort::testing {
namespace {

class ThreadSoak : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Members, ThreadSoak, ::testing::Values(2, 3));

TEST_P(ThreadSoak, SmallAllReduces) {
  for_each_member(GetParam(),
                  [](Communicator& communicator) { soak_small(communicator, small_soak_rounds()); });
}

TEST_P(ThreadSoak, LargeAllReduces) {
  for_each_member(GetParam(),
                  [](Communicator& communicator) { soak_large(communicator, large_soak_rounds()); });
}

}  // namespace
}  // namespace cohort::testing
