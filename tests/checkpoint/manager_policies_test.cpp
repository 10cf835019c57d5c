// When a CheckpointManager saves, and which checkpoints it keeps.
#include <filesystem>
#include <limits>
#include <optional>

#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

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
