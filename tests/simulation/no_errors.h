// What tests expect of members of a simulated cluster in which nothing was disturbed.
#pragma once

#include <optional>

#include <gtest/gtest.h>

#include "simulation/simulated_cluster.h"

namespace cohort::simulation {

inline void expect_no_errors(const SimulatedRun& run) {
  for (const std::optional<Error>& error : run.errors) EXPECT_FALSE(error) << error->what();
}

}  // namespace cohort::simulation
