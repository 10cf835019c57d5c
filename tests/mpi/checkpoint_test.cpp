// Checkpoints of workers that are ranks.
#include <unistd.h>

#include <filesystem>
#include <optional>

#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "mpi_main.h"
#include "temporary_folder.h"
#include "thrown.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

class CheckpointsOfRanks : public ::testing::Test {
 protected:
  CheckpointsOfRanks() {
    // The first rank's folder, for all of them.
    const std::string own = ::testing::TempDir() + "cohort-checkpoint-" + std::to_string(::getpid());
    folder_ = session().exchange(own).front();
  }
  ~CheckpointsOfRanks() override {
    (void)session().exchange("done");
    if (session().rank() == 0) std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

TEST_F(CheckpointsOfRanks, AreSharedEvenlyAndRestored) { check_saving_and_restoring(session(), 1, folder_); }
TEST_F(CheckpointsOfRanks, HaveTheFirstOnesOwnState) { check_values_of_the_first_worker(session(), folder_); }
TEST_F(CheckpointsOfRanks, FailOnAll) { check_failure_of_one_worker(session(), folder_); }
TEST_F(CheckpointsOfRanks, HaveTheSameValuesOnAll) { check_other_values(session(), folder_); }

TEST_F(CheckpointsOfRanks, AreSavedInTheBackground) { check_saving_in_background(session(), folder_); }
TEST_F(CheckpointsOfRanks, HaveWhatMetricsHaveSeen) { check_metrics_in_checkpoints(session(), folder_); }
TEST_F(CheckpointsOfRanks, FailOnAllWhereAValueFails) { check_a_value_that_fails(session(), folder_); }

TEST_F(CheckpointsOfRanks, HaveValuesOfOtherPrograms) { check_loading_safetensors(session(), 1, folder_); }

TEST_F(CheckpointsOfRanks, HaveSharedSlotsAsWholeOnes) { check_checkpoints_of_shares(session(), 1, folder_); }

TEST_F(CheckpointsOfRanks, NameTheOneThatHasNoRoom) {
  const int last = static_cast<int>(session().workers().size()) - 1;
  const MultiWorkerMirroredStrategy strategy(session(), {.timeout_seconds = 60});
  const auto scope = strategy.scope();
  const Variable variable({.initial_value = Tensor::zeros({100000}, DType::kFloat32)});
  Checkpoint checkpoint(strategy);
  checkpoint.add("v", variable);
  {
    std::optional<LargestFile> limit;
    if (session().rank() == last) limit.emplace(1000);
    const auto text = message_of(ErrorCode::kUnavailable, [&] { checkpoint.save(folder_, 1); });
    EXPECT_THAT(text, ::testing::HasSubstr("File too large"));
    if (last > 0) {
      EXPECT_THAT(text, ::testing::HasSubstr("worker " + std::to_string(last) + " (host"));
    }
  }
  EXPECT_TRUE(list_checkpoints(folder_).empty());
  checkpoint.save(folder_, 1);
  checkpoint.restore(folder_ + "/step-1").assert_consumed();
}

}  // namespace
}  // namespace cohort::testing
