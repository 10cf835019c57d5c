// What a CheckpointManager does, when it saves, and which checkpoints it keeps.
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/checkpoint/checkpoint_manager.h>
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
using ::testing::Optional;

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

// When a CheckpointManager saves, and which checkpoints it keeps.

std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  for (const FoundCheckpoint& found : list_checkpoints(folder)) steps.push_back(found.step);
  return steps;
}

class ManagerPolicies : public ::testing::Test {
 protected:
  ManagerPolicies() { checkpoint_.add("value", value_); }

  /// Steps 1 to `last`.
  void train(CheckpointManager& manager, std::int64_t last) {
    for (value_ = 1; value_ <= last; ++value_) manager.save_if_due(value_);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("checkpoints");
  std::int64_t value_ = 0;
  Checkpoint checkpoint_;
};

TEST_F(ManagerPolicies, SavesEverySoManySteps) {
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 0, .save_every_steps = 3});
  EXPECT_FALSE(manager.save_if_due(2).has_value());
  EXPECT_EQ(manager.save_if_due(3), path_ + "/step-3");
  EXPECT_FALSE(manager.save_if_due(3).has_value()) << "it is saved";
  train(manager, 10);
  EXPECT_THAT(steps_in(path_), ElementsAre(3, 6, 9));
}

TEST_F(ManagerPolicies, SavesWhenTimeHasPassed) {
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 0, .save_every_seconds = 1e-9});
  EXPECT_FALSE(manager.save_if_due(1).has_value());
  EXPECT_EQ(manager.save_if_due(2), path_ + "/step-2");
  CheckpointManager patient(checkpoint_, path_ + "2", {.max_to_keep = 0, .save_every_seconds = 3600});
  train(patient, 10);
  EXPECT_THAT(steps_in(path_ + "2"), ElementsAre());
}

TEST_F(ManagerPolicies, SavesInTheBackgroundWithTheSameOptions) {
  CheckpointManager manager(checkpoint_, path_,
                            {.max_to_keep = 1, .best_metric = "accuracy", .save_every_steps = 2});
  for (value_ = 1; value_ <= 9; ++value_)
    if (manager.is_due(value_)) manager.save_async(value_, {{"accuracy", value_ == 4 ? 0.9 : 0.5}});
  checkpoint_.wait();
  EXPECT_EQ(manager.best()->step, 4);
  manager.save(10);
  EXPECT_THAT(steps_in(path_), ElementsAre(4, 10));
}

TEST_F(ManagerPolicies, NeverSavesByItselfUnlessTold) {
  CheckpointManager manager(checkpoint_, path_);
  train(manager, 5);
  EXPECT_THAT(steps_in(path_), ElementsAre());
}

TEST_F(ManagerPolicies, KeepsSomeForGood) {
  CheckpointManager manager(checkpoint_, path_,
                            {.max_to_keep = 2, .keep_every_steps = 4, .save_every_steps = 1});
  train(manager, 11);
  EXPECT_THAT(steps_in(path_), ElementsAre(4, 8, 10, 11));
}

TEST_F(ManagerPolicies, KeepsTheBest) {
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 1, .best_metric = "accuracy"});
  EXPECT_FALSE(manager.best().has_value());
  manager.save(1, {{"accuracy", 0.5}, {"loss", 2}});
  manager.save(2, {{"accuracy", 0.9}, {"loss", 1}});
  manager.save(3, {{"accuracy", 0.9}});
  manager.save(4, {{"loss", 0}});
  EXPECT_THAT(steps_in(path_), ElementsAre(2, 4));
  EXPECT_EQ(manager.best()->step, 2);
  EXPECT_EQ(manager.best()->path, path_ + "/step-2");
  manager.save(5, {{"accuracy", 0.95}});
  EXPECT_THAT(steps_in(path_), ElementsAre(5));
}

TEST_F(ManagerPolicies, TakesTheLowestForTheBestIfToldSo) {
  CheckpointManager manager(checkpoint_, path_,
                            {.max_to_keep = 1, .best_metric = "loss", .lower_is_better = true});
  for (const int step : {1, 2, 3}) manager.save(step, {{"loss", step == 2 ? -1 : step}});
  EXPECT_THAT(steps_in(path_), ElementsAre(2, 3));
}

TEST_F(ManagerPolicies, RemembersTheBestOfAnEarlierJob) {
  {
    CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 0});
    manager.save(1, {{"accuracy", 0.9}});
    manager.save(2, {{"accuracy", 0.5}});
  }
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 1, .best_metric = "accuracy"});
  EXPECT_EQ(manager.best()->step, 1);
  manager.save(3);
  EXPECT_THAT(steps_in(path_), ElementsAre(1, 3));
}

TEST_F(ManagerPolicies, StoresNoNumberThatIsNone) {
  CheckpointManager manager(checkpoint_, path_, {.max_to_keep = 1, .best_metric = "accuracy"});
  manager.save(1, {{"accuracy", 0.1}});
  manager.save(2, {{"accuracy", std::numeric_limits<double>::quiet_NaN()}});
  manager.save(3, {{"accuracy", std::numeric_limits<double>::infinity()}});
  EXPECT_THAT(steps_in(path_), ElementsAre(1, 3));
}

TEST_F(ManagerPolicies, KnowNoBestWithoutAMetric) {
  CheckpointManager manager(checkpoint_, path_);
  EXPECT_THAT(message_of(ErrorCode::kWrongContext, [&] { (void)manager.best(); }), HasSubstr("best_metric"));
}

TEST_F(ManagerPolicies, RefuseWrongValues) {
  const auto refused = [&](const CheckpointManagerOptions& options, const char* why) {
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                           [&] { const CheckpointManager manager(checkpoint_, path_, options); }),
                HasSubstr(why));
  };
  refused({.keep_every_steps = -1}, "keep_every_steps is -1");
  refused({.save_every_steps = -2}, "save_every_steps is -2");
  refused({.save_every_seconds = -0.5}, "save_every_seconds is -0.5");
  refused({.save_every_seconds = std::numeric_limits<double>::quiet_NaN()}, "save_every_seconds is nan");
}

class ManagerPoliciesOfWorkers : public ManagerPolicies, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, ManagerPoliciesOfWorkers, ::testing::Values(2, 3, 4, 5),
                         ::testing::PrintToStringParamName());

TEST_P(ManagerPoliciesOfWorkers, DecideAlike) {
  for_each_worker(GetParam(), [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
    const auto scope = strategy.scope();
    const Variable variable({.initial_value = Tensor::scalar(0.0F)});
    Checkpoint checkpoint(strategy);
    checkpoint.add("v", variable);
    CheckpointManager manager(checkpoint, path_,
                              {.max_to_keep = 1, .best_metric = "accuracy", .save_every_seconds = 0.001});
    std::int64_t saves = 0;
    std::int64_t step = 0;
    while (saves < 5) {
      // What the others say of themselves does not count.
      const double accuracy = worker.rank() == 0 && saves < 2 ? 0.5 + 0.1 * static_cast<double>(saves) : 0.1;
      if (const auto path = manager.save_if_due(++step, {{"accuracy", accuracy}})) {
        ++saves;
        EXPECT_THAT(manager.latest_step(), Optional(step));
      }
    }
    const auto best = manager.best();
    ASSERT_TRUE(best.has_value());
    EXPECT_NE(best->step, step);
    EXPECT_EQ(worker.exchange(std::to_string(step)),
              std::vector<std::string>(static_cast<std::size_t>(GetParam()), std::to_string(step)));
  });
  EXPECT_EQ(steps_in(path_).size(), 2);
}

TEST_P(ManagerPoliciesOfWorkers, AreTheSameOnAll) {
  for_each_worker(GetParam(), [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
    Checkpoint checkpoint(strategy);
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                           [&] {
                             const CheckpointManager manager(
                                 checkpoint, path_, {.save_every_steps = worker.rank() == 1 ? 5 : 0});
                           }),
                AllOf(HasSubstr("the options of the CheckpointManager differ"),
                      HasSubstr("save_every_steps 5"), HasSubstr("save_every_steps 0")));
  });
}

}  // namespace
}  // namespace cohort::testing
