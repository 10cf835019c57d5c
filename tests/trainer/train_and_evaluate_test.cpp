// Which checkpoints train_and_evaluate makes and evaluates, alone and with an evaluator of its own.
#include <cohort/trainer/train_and_evaluate.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callbacks/function_callback.h>

#include "../strategy/strategies.h"
#include "linear_model.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Batch = LinearModel::Batch;

std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  for (const FoundCheckpoint& found : list_checkpoints(folder)) steps.push_back(found.step);
  return steps;
}

struct Program {
  std::int64_t max_steps = 10;
  std::optional<int> epochs = {};
  double throttle = 0;
  double delay = 0;
  std::vector<Exporter> exporters = {};
  CallbackList callbacks = {};
  TrainAndEvaluateOptions options = {};
};

struct Outcome {
  std::vector<std::int64_t> steps;  ///< that were evaluated
  std::vector<double> losses;
  std::vector<double> parameters;
};

/// As a program does that is started anew.
Outcome train(const Strategy& strategy, const Program& run) {
  const auto scope = strategy.scope();
  LinearModel model;
  Sgd optimizer({.learning_rate = 0.1});
  Trainer trainer(strategy, model, optimizer);
  Outcome outcome;
  for (const Evaluation& evaluation : train_and_evaluate<Batch>(trainer,
                                                                {.data = linear_batches(20, 4),
                                                                .max_steps = run.max_steps,
                                                                .epochs = run.epochs,
                                                                .callbacks = run.callbacks},
                                                                {.data = linear_batches(8, 4),
                                                                .exporters = run.exporters,
                                                                .start_delay_seconds = run.delay,
                                                                .throttle_seconds = run.throttle},
                                                                run.options)) {
    outcome.steps.push_back(evaluation.step);
    outcome.losses.push_back(*evaluation.logs.find("loss"));
  }
  outcome.parameters = numbers(model.parameters()[0].read());
  return outcome;
}

class TrainAndEvaluate : public WithReplicas {
 protected:
  TemporaryFolder folder_;
  Program run_{.options = {.folder = folder_.path().string(), .save_every_steps = 4}};
};
COHORT_INSTANTIATE_REPLICAS(TrainAndEvaluate);

TEST_P(TrainAndEvaluate, EvaluatesEachCheckpointButTheFirst) {
  EXPECT_THAT(train(strategy_, run_).steps, ElementsAre(4, 8, 10));
  EXPECT_THAT(steps_in(run_.options.folder), ElementsAre(0, 4, 8, 10));
}

TEST_P(TrainAndEvaluate, ThrottleLeavesOutAllButTheFirstAndTheLast) {
  run_.throttle = 1000;
  run_.delay = 1000;  // is an evaluator's
  EXPECT_THAT(train(strategy_, run_).steps, ElementsAre(4, 10));
}

TEST_P(TrainAndEvaluate, DoesNothingWhereAllStepsWereMade) {
  train(strategy_, run_);
  EXPECT_THAT(train(strategy_, run_).steps, IsEmpty());
}

TEST_P(TrainAndEvaluate, GoesOnToTheSameBits) {
  train(strategy_, run_);
  run_.max_steps = 18;
  const Outcome later = train(strategy_, run_);
  EXPECT_THAT(later.steps, ElementsAre(12, 16, 18));
  run_.options.folder += "/whole";
  EXPECT_EQ(train(strategy_, run_).parameters, later.parameters);
}

TEST_P(TrainAndEvaluate, EndsWhereTheDataEnds) {
  run_.epochs = 1;
  EXPECT_THAT(train(strategy_, run_).steps, ElementsAre(4, 5));
}

TEST_P(TrainAndEvaluate, EvaluatesNoStepTwiceWhereTheDataEndsAtACheckpoint) {
  run_.epochs = 1;
  run_.options.save_every_steps = 5;
  run_.exporters = {{.name = "latest", .when = ExportWhen::kLatest}};
  EXPECT_THAT(train(strategy_, run_).steps, ElementsAre(5));
  EXPECT_THAT(steps_in(run_.options.folder + "/export/latest"), ElementsAre(5));
}

TEST_P(TrainAndEvaluate, ExportsTheFinalTheLatestAndTheBest) {
  run_.exporters = {{.name = "final", .when = ExportWhen::kFinal},
                    {.name = "latest", .exports_to_keep = 1},
                    {.name = "best", .when = ExportWhen::kBest, .exports_to_keep = 2}};
  const Outcome outcome = train(strategy_, run_);
  EXPECT_THAT(outcome.losses, ::testing::SizeIs(3));
  EXPECT_THAT(steps_in(run_.options.folder + "/export/final"), ElementsAre(10));
  EXPECT_THAT(steps_in(run_.options.folder + "/export/latest"), ElementsAre(10));
  EXPECT_THAT(steps_in(run_.options.folder + "/export/best"), ::testing::SizeIs(2));
}

/// Trains in this thread, while the evaluator runs in another one.
Outcome with_evaluator(const Strategy& strategy, Program run) {
  Outcome outcome;
  run.options.task = TrainingTask::kEvaluate;
  std::thread evaluator([&outcome, run] { outcome = train(OneDeviceStrategy(Device::cpu(0)), run); });
  run.options.task = TrainingTask::kTrain;
  EXPECT_THAT(train(strategy, run).steps, IsEmpty());
  evaluator.join();
  return outcome;
}

TEST_P(TrainAndEvaluate, AnEvaluatorSeesTheLastCheckpoint) {
  const Outcome outcome = with_evaluator(strategy_, run_);
  ASSERT_FALSE(outcome.steps.empty());
  EXPECT_EQ(outcome.steps.back(), 10);
  run_.options.folder += "/alone";
  EXPECT_NEAR(train(strategy_, run_).losses.back(), outcome.losses.back(), 1e-6);
}

TEST_P(TrainAndEvaluate, AnEvaluatorEndsWithATrainingThatIsStopped) {
  run_.epochs = 1;
  run_.exporters = {{.name = "final", .when = ExportWhen::kFinal}};
  EXPECT_EQ(with_evaluator(strategy_, run_).steps.back(), 5);
  EXPECT_THAT(steps_in(run_.options.folder + "/export/final"), ElementsAre(5));
}

TEST_P(TrainAndEvaluate, AnEvaluatorIsNotEndedByATrainingThatWasRemoved) {
  run_.epochs = 1;  // ends with a mark
  static_cast<void>(train(strategy_, run_));
  for (const FoundCheckpoint& found : list_checkpoints(run_.options.folder))
    std::filesystem::remove_all(found.path);
  run_.options.task = TrainingTask::kEvaluate;
  run_.options.timeout_seconds = 0.01;
  EXPECT_THAT(
      message_of(ErrorCode::kDeadlineExceeded, [&] { train(OneDeviceStrategy(Device::cpu(0)), run_); }),
      HasSubstr("the training has not ended"));
}

TEST_P(TrainAndEvaluate, AnEvaluatorDoesNotWaitForEver) {
  run_.options.task = TrainingTask::kEvaluate;
  run_.options.timeout_seconds = 0.01;
  EXPECT_THAT(
      message_of(ErrorCode::kDeadlineExceeded, [&] { train(OneDeviceStrategy(Device::cpu(0)), run_); }),
      HasSubstr("after step none, and the training has not ended"));
}

TEST_P(TrainAndEvaluate, RefusesOptionsThatCannotBe) {
  EXPECT_THROW(train(strategy_, Program{}), InvalidArgument);
  run_.throttle = -1;
  EXPECT_THROW(train(strategy_, run_), InvalidArgument);
  run_.throttle = 0;
  run_.max_steps = 0;
  EXPECT_THROW(train(strategy_, run_), InvalidArgument);
}

TEST(TrainingTask, FollowsFromTheCluster) {
  const ClusterSpec with({{"chief", {"a:1"}}, {"worker", {"b:1"}}, {"evaluator", {"c:1"}}});
  EXPECT_EQ(training_task(with, "evaluator"), TrainingTask::kEvaluate);
  EXPECT_EQ(training_task(with, "worker"), TrainingTask::kTrain);
  const ClusterSpec without({{"worker", {"b:1"}}});
  EXPECT_EQ(training_task(without, "worker"), TrainingTask::kTrainAndEvaluate);
  EXPECT_EQ(training_task(without, "evaluator"), TrainingTask::kEvaluate);
  EXPECT_THROW(static_cast<void>(training_task(without, "ps")), InvalidArgument);
}

}  // namespace
}  // namespace cohort::testing
