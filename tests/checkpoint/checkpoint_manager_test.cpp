#include <cohort/checkpoint/checkpoint_manager.h>

#include <filesystem>
#include <fstream>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "checkpoint/format/folder.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointManagerTest : public ::testing::Test {
 protected:
  CheckpointManagerTest() { checkpoint_.add("value", value_); }

  [[nodiscard]] std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    for (const FoundCheckpoint& found : list_checkpoints(path_)) steps.push_back(found.step);
    return steps;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("checkpoints");
  std::int64_t value_ = 0;
  Checkpoint checkpoint_;
};

TEST_F(CheckpointManagerTest, KeepsTheNewest) {
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 2});
  for (const std::int64_t step : {8, 9, 10, 11})
    EXPECT_EQ(manager.save(step), path_ + "/step-" + std::to_string(step));
  EXPECT_THAT(steps(), ElementsAre(10, 11));
}

TEST_F(CheckpointManagerTest, KeepsTheOneThatItSaves) {
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 1});
  manager.save(8);
  manager.save(3);  // as after a return to an older checkpoint
  EXPECT_THAT(steps(), ElementsAre(3));
}

TEST_F(CheckpointManagerTest, KeepsAll) {
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 0});
  for (std::int64_t step = 0; step < 7; ++step) manager.save(step);
  EXPECT_EQ(steps().size(), 7);
}

TEST_F(CheckpointManagerTest, RefusesToKeepLessThanNothing) {
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [&] { const CheckpointManager manager(checkpoint_, path_, {.max_to_keep = -1}); }),
              HasSubstr("max_to_keep is -1"));
}

TEST_F(CheckpointManagerTest, BeginsWithNothing) {
  CheckpointManager manager(checkpoint_, path_);
  const LatestCheckpoint latest = manager.restore_latest();
  EXPECT_FALSE(latest.step.has_value());
  EXPECT_FALSE(latest.status.has_value());
}

TEST_F(CheckpointManagerTest, RestoresTheNewestThatIsSound) {
  CheckpointManager manager(checkpoint_, path_);
  for (value_ = 1; value_ <= 4; ++value_) manager.save(value_);
  std::filesystem::remove(path_ + "/step-4/manifest.json");
  std::ofstream(path_ + "/step-3/values-00000-of-00001.safetensors", std::ios::app) << "x";
  std::filesystem::create_directory(path_ + "/step-9.unfinished");
  const LatestCheckpoint latest = manager.restore_latest();
  EXPECT_EQ(latest.step, 2);
  EXPECT_EQ(value_, 2);
  latest.status->assert_consumed();
  ASSERT_EQ(latest.skipped.size(), 2);
  EXPECT_EQ(latest.skipped[0].path, path_ + "/step-4");
  EXPECT_THAT(latest.skipped[0].reason, HasSubstr("No such file"));
  EXPECT_EQ(latest.skipped[1].path, path_ + "/step-3");
  EXPECT_THAT(latest.skipped[1].reason, HasSubstr("bytes instead of"));

  // They are out of the way: their steps can be saved, and they take no sound one's place.
  EXPECT_THAT(steps(), ElementsAre(1, 2));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/step-3.damaged"));
  manager.save(3);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
}

TEST_F(CheckpointManagerTest, SkipsALinkThatLeadsNowhere) {
  CheckpointManager manager(checkpoint_, path_);
  manager.save(1);
  std::filesystem::create_directory_symlink(path_ + "/nowhere", path_ + "/step-7");
  std::ofstream(path_ + "/step-8") << "no folder";
  const LatestCheckpoint latest = manager.restore_latest();
  EXPECT_EQ(latest.step, 1);
  ASSERT_EQ(latest.skipped.size(), 2);
  EXPECT_EQ(latest.skipped[1].path, path_ + "/step-7");
  EXPECT_THAT(latest.skipped[1].reason, HasSubstr("No such file"));
  EXPECT_THAT(steps(), ElementsAre(1));
}

TEST_F(CheckpointManagerTest, TakesACheckpointThatCannotBeReadForNoDamage) {
  CheckpointManager manager(checkpoint_, path_);
  manager.save(1);
  manager.save(2);
  // A folder leads to itself: whether it is sound cannot be told.
  std::filesystem::rename(path_ + "/step-2", path_ + "/elsewhere");
  std::filesystem::create_directory_symlink("step-2", path_ + "/step-2");
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { (void)manager.restore_latest(); }),
              HasSubstr("step-2"));
  EXPECT_THAT(steps(), ElementsAre(1, 2));
}

TEST_F(CheckpointManagerTest, RemovesWhatAKilledWriterLeft) {
  std::filesystem::create_directories(path_ + "/step-7.unfinished/part");
  const CheckpointManager manager(checkpoint_, path_);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/step-7.unfinished"));
}

TEST_F(CheckpointManagerTest, ThatFailsToSaveKeepsWhatThereIs) {
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 1});
  value_ = 1;
  manager.save(1);
  // A file where the next folder would be.
  (void)folder_.file("checkpoints/step-2.unfinished", "");
  (void)folder_.file("checkpoints/step-2", "");
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { manager.save(2); }), HasSubstr("already"));
  EXPECT_THAT(verify_checkpoint(path_ + "/step-1"), IsEmpty());
  EXPECT_EQ(manager.save(3), path_ + "/step-3");
}

TEST_F(CheckpointManagerTest, HasItsFolderAlone) {
  CheckpointManager manager(checkpoint_, path_);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { const CheckpointManager other(checkpoint_, path_); }),
              AllOf(HasSubstr(path_), HasSubstr("another writer, process")));
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { checkpoint_.save(path_, 1); }),
              HasSubstr("another writer"));
  manager.save(1);
}

TEST_F(CheckpointManagerTest, IsOneForAllWorkers) {
  for_each_worker(3, [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
    const auto scope = strategy.scope();
    const Variable variable({.initial_value = Tensor::scalar(0.0F)});
    Checkpoint checkpoint(strategy);
    checkpoint.add("v", variable);
    CheckpointManager manager(checkpoint, path_, {.max_to_keep = 2});
    for (int step = 1; step <= 3; ++step) {
      variable.assign(static_cast<float>(step));
      manager.save(step);
    }
    if (worker.rank() == 0) std::filesystem::remove(path_ + "/step-3/manifest.json");
    EXPECT_EQ(manager.restore_latest().step, 2);
    EXPECT_EQ(variable.read().item<float>(), 2.0F);
  });
  EXPECT_THAT(steps(), ElementsAre(2));
}

}  // namespace
}  // namespace cohort::testing
