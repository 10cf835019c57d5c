// When a training that gets no better ends, and with which parameters.
#include <cohort/trainer/callbacks/early_stopping.h>

#include <limits>
#include <vector>

#include <gmock/gmock.h>

#include "../../strategy/strategies.h"
#include "scripted_training.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The epoch after which it ends the training of these values, or -1.
int ends_after(EarlyStopping& early, ScriptedTraining& training, const std::vector<double>& values,
               const std::string& name = "val_loss") {
  training.begin(early);
  for (int epoch = 0; epoch < static_cast<int>(values.size()); ++epoch) {
    training.epoch(early, epoch, name, values[static_cast<std::size_t>(epoch)]);
    if (training.stopped()) return epoch;
  }
  return -1;
}

int ends_after(const EarlyStoppingOptions& options, const std::vector<double>& values) {
  EarlyStopping early(options);
  ScriptedTraining training;
  return ends_after(early, training, values, options.monitor);
}

TEST(EarlyStopping, EndsAfterSoManyEpochsWithoutABetterOne) {
  EXPECT_EQ(ends_after({.patience = 1}, {1, 0.9, 0.95, 0.8}), 2);
  EXPECT_EQ(ends_after({.patience = 2}, {1, 0.9, 0.95, 0.8, 0.85, 0.8}), 5);
  EXPECT_EQ(ends_after({.patience = 2}, {1, 0.9, 0.8, 0.7}), -1);
}

TEST(EarlyStopping, KnowsWhichWayIsBetter) {
  EXPECT_EQ(ends_after({.monitor = "val_accuracy", .patience = 1}, {0.1, 0.2, 0.3, 0.2}), 3);
  EXPECT_EQ(ends_after({.monitor = "auc", .patience = 1}, {0.1, 0.2, 0.3, 0.2}), 3);
  EXPECT_EQ(ends_after({.monitor = "mean_squared_error", .patience = 1}, {0.1, 0.2}), 1);
  EXPECT_EQ(ends_after({.monitor = "val_score", .patience = 1}, {0.1, 0.2}), 1);
  EXPECT_EQ(ends_after({.monitor = "val_score", .mode = MonitorMode::kMax, .patience = 1}, {0.1, 0.2}), -1);
}

TEST(EarlyStopping, NotANumberIsNeverBetter) {
  EXPECT_EQ(ends_after({.patience = 2}, {kNaN, 5, 4, kNaN, kNaN}), 4);
}

TEST(EarlyStopping, WaitsForABaselineAndAFirstEpoch) {
  EXPECT_EQ(ends_after({.patience = 2, .baseline = 0.1}, {1, 0.9, 0.95}), 2);
  EXPECT_EQ(ends_after({.patience = 1, .start_from_epoch = 2}, {1, 2, 3, 4}), 3);
}

TEST(EarlyStopping, GivesBackTheBestParameters) {
  ScriptedTraining training;
  EarlyStopping early({.patience = 2, .restore_best_weights = true});
  EXPECT_EQ(ends_after(early, training, {1, 0.5, 0.7, 0.6}), 3);
  EXPECT_EQ(training.weight(), 1);
  EXPECT_EQ(early.best_epoch(), 1);
  EXPECT_EQ(early.stopped_epoch(), 3);
}

TEST(EarlyStopping, GivesThemBackAfterTheLastEpochToo) {
  ScriptedTraining training({.epochs = 3});
  EarlyStopping early({.patience = 9, .restore_best_weights = true});
  EXPECT_EQ(ends_after(early, training, {1, 0.5, 0.7}), -1);
  EXPECT_EQ(training.weight(), 1);
}

TEST(EarlyStopping, GivesThemBackWhereAnotherCallbackEndsTheTraining) {
  ScriptedTraining training({.epochs = 9});
  EarlyStopping early({.patience = 9, .restore_best_weights = true});
  EXPECT_EQ(ends_after(early, training, {1, 0.5, 0.7}), -1);
  EXPECT_NE(training.weight(), 1);
  early.on_train_end({});
  EXPECT_NE(training.weight(), 1) << "max_steps ends a fit, and the training goes on";
  training.stop();
  early.on_train_end({});
  EXPECT_EQ(training.weight(), 1);
}

TEST(EarlyStopping, GoesOnAfterARestart) {
  const TemporaryFolder folder;
  ScriptedTraining training;
  const EarlyStoppingOptions options{.patience = 2, .restore_best_weights = true};
  {
    EarlyStopping early(options);
    EXPECT_EQ(ends_after(early, training, {1, 0.5, 0.7}), -1);
    Checkpoint checkpoint(training.strategy());
    early.add_state(checkpoint, "callbacks");
    checkpoint.save(folder.path().string(), 3);
  }
  EarlyStopping early(options);
  training.begin(early);
  Checkpoint checkpoint(training.strategy());
  early.add_state(checkpoint, "callbacks");
  checkpoint.restore(folder.path().string() + "/step-3").assert_consumed();
  EXPECT_EQ(early.wait(), 1);
  training.epoch(early, 3, "val_loss", 0.6);
  EXPECT_TRUE(training.stopped());
  EXPECT_EQ(training.weight(), 1);
}

TEST(EarlyStopping, AMissingMonitorEndsNothing) {
  EarlyStopping early({.monitor = "val_loss"});
  ScriptedTraining training;
  EXPECT_EQ(ends_after(early, training, {1, 2, 3}, "loss"), -1);
  EXPECT_EQ(early.best(), std::nullopt);
}

TEST(EarlyStopping, RefusesNumbersThatCannotBe) {
  EXPECT_THROW(EarlyStopping({.patience = -1}), InvalidArgument);
  EXPECT_THROW(EarlyStopping({.min_delta = -1}), InvalidArgument);
  EXPECT_THROW(EarlyStopping({.monitor = ""}), InvalidArgument);
}

}  // namespace
}  // namespace cohort::testing
