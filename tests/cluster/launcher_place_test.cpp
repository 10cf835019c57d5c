// Which launcher's variables are believed.
#include "cluster/launcher.h"

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// As `RANK of SIZE, VARIABLE`.
std::string place(const Environment& variables) {
  const auto place = launcher_place(variables);
  if (!place) return "none";
  return std::to_string(place->rank) + " of " + (place->size ? std::to_string(*place->size) : "?") + ", " +
         place->size_variable;
}

TEST(LauncherPlace, IsToldByEachLauncher) {
  EXPECT_EQ(place({}), "none");
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "2"}}),
            "2 of 4, OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(place({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}), "1 of 3, PMI_SIZE");
  EXPECT_EQ(place({{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "prterun-n0@1"}}), "5 of ?, ");
  EXPECT_EQ(place({{"PMIX_RANK", "1"},
                   {"PMIX_NAMESPACE", "slurm.pmix.6.0"},
                   {"SLURM_PROCID", "1"},
                   {"SLURM_STEP_NUM_TASKS", "3"}}),
            "1 of 3, SLURM_STEP_NUM_TASKS");
  // As in a container that Slurm's own variables do not reach.
  EXPECT_EQ(place({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.pmix.6.0"}}), "1 of ?, ");
  EXPECT_EQ(place({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "3"}}), "1 of 3, SLURM_STEP_NUM_TASKS");
}

TEST(LauncherPlace, IsTheNearestLaunchers) {
  // On the first host of a batch job under mpirun, and on another one.
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_RANK", "1"},
                   {"OMPI_COMM_WORLD_SIZE", "4"},
                   {"SLURM_PROCID", "0"},
                   {"SLURM_NTASKS", "4"}}),
            "1 of 4, OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_RANK", "3"},
                   {"OMPI_COMM_WORLD_SIZE", "4"},
                   {"SLURM_PROCID", "0"},
                   {"SLURM_STEP_NUM_TASKS", "1"}}),
            "3 of 4, OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(
      place({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}),
      "3 of 4, PMI_SIZE");
}

TEST(LauncherPlace, OfABatchScriptIsNone) {
  EXPECT_EQ(place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), "none");
}

TEST(LauncherPlace, RefusesVariablesThatMakeNoSense) {
  EXPECT_THAT(
      [] {
        return place({{"OMPI_COMM_WORLD_RANK", "one"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("OMPI_COMM_WORLD_RANK is 'one'; it must be a whole number, at least 0")));
  EXPECT_THAT(
      [] {
        return place({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("PMI_RANK is 4, but PMI_SIZE is 4")));
  EXPECT_THAT(
      [] {
        return place({{"SLURM_STEP_NUM_TASKS", "4"}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("SLURM_PROCID is not set, but other variables of srun")));
}

}  // namespace
}  // namespace cohort::testing
