// The callbacks that set the learning rate.
#include <limits>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/trainer/callbacks/learning_rate_scheduler.h>
#include <cohort/trainer/callbacks/reduce_on_plateau.h>

#include "scripted_training.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;

/// The rates in the logs of the epochs, and at last the one after them.
std::vector<double> rates_of(Callback& callback, ScriptedTraining& training,
                             const std::vector<double>& values, int first_epoch = 0) {
  std::vector<double> rates;
  for (const double value : values)
    rates.push_back(*training.epoch(callback, first_epoch++, "val_loss", value).find("learning_rate"));
  rates.push_back(training.optimizer()->learning_rate());
  return rates;
}

std::vector<double> rates_of(const ReduceOnPlateauOptions& options, const std::vector<double>& values) {
  ReduceOnPlateau reduce(options);
  ScriptedTraining training;
  training.begin(reduce);
  return rates_of(reduce, training, values);
}

TEST(ReduceOnPlateau, ReducesWhereItGetsNoBetter) {
  EXPECT_THAT(rates_of({.factor = 0.5, .patience = 2}, {1, 1.1, 1.2, 1.3}), ElementsAre(1, 1, 1, 0.5, 0.5));
  EXPECT_THAT(rates_of({.factor = 0.5, .patience = 1}, {1, 0.9, 0.8}), ElementsAre(1, 1, 1, 1));
}

TEST(ReduceOnPlateau, EpochsOfTheCooldownDoNotCount) {
  EXPECT_THAT(rates_of({.factor = 0.5, .patience = 1, .cooldown = 2}, {1, 1, 1, 1, 1}),
              ElementsAre(1, 1, 0.5, 0.5, 0.25, 0.25));
}

TEST(ReduceOnPlateau, StopsAtTheLeastRate) {
  EXPECT_THAT(rates_of({.factor = 0.5, .patience = 1, .min_rate = 0.4}, {1, 1, 1, 1}),
              ElementsAre(1, 1, 0.5, 0.4, 0.4));
}

TEST(ReduceOnPlateau, NotANumberIsNoFirstBest) {
  EXPECT_THAT(rates_of({.factor = 0.5, .patience = 1}, {std::numeric_limits<double>::quiet_NaN(), 5, 4}),
              ElementsAre(1, 0.5, 0.5, 0.5));
}

TEST(ReduceOnPlateau, GoesOnAtTheReducedRateAfterARestart) {
  const TemporaryFolder folder;
  const ReduceOnPlateauOptions options{.factor = 0.5, .patience = 2};
  {
    ReduceOnPlateau reduce(options);
    ScriptedTraining training;
    training.begin(reduce);
    rates_of(reduce, training, {1, 1, 1, 1});
    Checkpoint checkpoint(training.strategy());
    reduce.add_state(checkpoint, "callbacks");
    checkpoint.save(folder.path().string(), 4);
  }
  ReduceOnPlateau reduce(options);
  ScriptedTraining training;
  training.begin(reduce);
  Checkpoint checkpoint(training.strategy());
  reduce.add_state(checkpoint, "callbacks");
  checkpoint.restore(folder.path().string() + "/step-4").assert_consumed();
  EXPECT_EQ(reduce.wait(), 1);
  EXPECT_THAT(rates_of(reduce, training, {1}, 4), ElementsAre(0.5, 0.25));
}

TEST(ReduceOnPlateau, RefusesWhatReducesNothing) {
  EXPECT_THROW(ReduceOnPlateau({.factor = 1}), InvalidArgument);
  EXPECT_THROW(ReduceOnPlateau({.patience = -1}), InvalidArgument);
}

TEST(LearningRateScheduler, SetsTheRateOfEachEpoch) {
  LearningRateScheduler schedule([](int, double rate) { return rate / 2; });
  ScriptedTraining training;
  training.begin(schedule);
  EXPECT_THAT(rates_of(schedule, training, {1, 1, 1}), ElementsAre(0.5, 0.25, 0.125, 0.125));
}

TEST(LearningRateScheduler, AnEpochThatGoesOnKeepsItsRate) {
  const TemporaryFolder folder;
  const auto halve = [](int, double rate) { return rate / 2; };
  {
    LearningRateScheduler schedule(halve);
    ScriptedTraining training;
    training.begin(schedule);
    rates_of(schedule, training, {1, 1});
    Checkpoint checkpoint(training.strategy());
    schedule.add_state(checkpoint, "callbacks");
    checkpoint.save(folder.path().string(), 2);
  }
  LearningRateScheduler schedule(halve);
  ScriptedTraining training;
  training.begin(schedule);
  Checkpoint checkpoint(training.strategy());
  schedule.add_state(checkpoint, "callbacks");
  checkpoint.restore(folder.path().string() + "/step-2").assert_consumed();
  EXPECT_THAT(rates_of(schedule, training, {1, 1}, 1), ElementsAre(0.25, 0.125, 0.125));
}

TEST(LearningRateScheduler, RefusesRatesThatCannotBe) {
  LearningRateScheduler schedule([](int, double) { return -1.0; });
  ScriptedTraining training;
  training.begin(schedule);
  EXPECT_THROW(schedule.on_epoch_begin(0, {}), InvalidArgument);
  EXPECT_THROW(LearningRateScheduler(nullptr), InvalidArgument);
}

}  // namespace
}  // namespace cohort::testing
