// Every name that COHORT_ALGORITHM takes gives right results. The names come from the
// environment of this program, which CTest runs once for each.
#include <cohort/base/config.h>

#include <gmock/gmock.h>

#include "communicator_contracts.h"
#include "rank_values.h"

namespace cohort {
namespace {

using ::testing::AnyOf;

TEST(ForcedAlgorithm, Reduces) { testing::check_reductions(*make_communicator()); }
TEST(ForcedAlgorithm, MovesData) { testing::check_data_movement(*make_communicator()); }
TEST(ForcedAlgorithm, WorksAtEverySizeInAnyMemory) { testing::check_sizes_and_memory(*make_communicator()); }
TEST(ForcedAlgorithm, LeavesMismatchesToBeExplained) { testing::check_mismatch(*make_communicator()); }

TEST(ForcedAlgorithm, IsTaken) {
  const std::string& name = config().algorithm();
  const bool over_nodes = make_communicator()->name() == "network";
  const auto communicator = make_communicator();
  std::vector<float> own_memory(300'000, 1);
  const bool in_heap = name != "single_copy";
  const Tensor tensor = in_heap ? filled(300'000, 1) : Tensor::wrap(std::span(own_memory), {300'000});
  if (name == "binomial" || name == "halving_broadcast" || name == "scatter_all_gather")
    communicator->broadcast(tensor, 0);
  else if (name.ends_with("_reduce"))
    communicator->reduce(tensor, communicator->rank() == 0 ? tensor : Tensor(), ReduceOp::kSum, 0);
  else
    communicator->all_reduce(tensor, ReduceOp::kSum);
  if (over_nodes) {
    EXPECT_EQ(communicator->last_algorithm(), name == "mpi" ? name : "two_level_" + name);
  } else {
    // Not every system lets one process copy from another.
    EXPECT_THAT(communicator->last_algorithm(), AnyOf(name, in_heap ? name : "pieces"));
  }
  if (communicator->last_algorithm() != "pieces" || name == "pieces") {
    EXPECT_EQ(communicator->last_choice(), "forced");
  }
}

TEST(ForcedAlgorithm, LeavesSmallCallsAlone) {
  const auto communicator = make_communicator();
  communicator->all_reduce(filled(8, 1), ReduceOp::kSum);
  EXPECT_EQ(communicator->last_choice(), "size");
}

}  // namespace
}  // namespace cohort
