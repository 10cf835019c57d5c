// The contract of distributed datasets, with workers that are ranks.
#include <gmock/gmock.h>

#include "mpi_main.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

TEST(RanksAndDevices, SeeEachElementOnce) {
  for (const int devices : {1, 2}) check_each_element_once(session(), devices);
}
TEST(RanksAndDevices, TakeEqualSteps) {
  for (const int devices : {1, 2}) check_equal_steps(session(), devices);
}
TEST(RanksAndDevices, TakeUpAPassAnywhere) {
  for (const int devices : {1, 2}) check_positions(session(), devices);
}
TEST(RanksAndDevices, EndTogetherWhenOneCannotRead) {
  for (const int devices : {1, 2}) check_failing_reader(session(), devices);
}

}  // namespace
}  // namespace cohort::testing
