// Thousands of jobs in which something goes wrong: none hangs, and each names who is guilty.
#include <gtest/gtest.h>

#include "simulation/fault_schedule.h"

namespace cohort::simulation {
namespace {

TEST(FaultSchedules, EndAndNameWhoIsGuilty) {
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
    const FaultSchedule schedule = fault_schedule(seed);
    EXPECT_EQ(problem_of(schedule), "") << "seed " << seed << ": " << schedule.describe();
  }
}

}  // namespace
}  // namespace cohort::simulation
