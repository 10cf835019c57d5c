// What TensorBoardLogger writes, where, and after a restart.
#include <cohort/trainer/callbacks/tensor_board_logger.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "../../../benchmarks/dispatch/allocations.h"
#include "event_file.h"
#include "scripted_training.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using Json = nlohmann::json;

Logs logs_of(double loss) {
  Logs logs;
  logs.set("loss", loss);
  return logs;
}

/// Two steps of an epoch, and its end, with a validation.
void epoch(TensorBoardLogger& board, ScriptedTraining& training, int number) {
  board.on_epoch_begin(number, {});
  for (int batch = 0; batch < 2; ++batch) {
    training.set_step(training.step() + 1);
    board.on_train_batch_end(batch, logs_of(number + batch / 4.0));
  }
  board.on_test_end(logs_of(3));
  Logs at_end = logs_of(number + 0.5);
  at_end.set("val_loss", 3);
  board.on_epoch_end(number, at_end);
}

class TensorBoard : public ::testing::Test {
 protected:
  [[nodiscard]] Json train_run() const { return scalars_of(folder_.path("logs/train")); }
  [[nodiscard]] Json validation_run() const { return scalars_of(folder_.path("logs/validation")); }

  const TemporaryFolder folder_;
  ScriptedTraining training_;
};

TEST_F(TensorBoard, EpochsHaveTheirLossAndTheirRate) {
  TensorBoardLogger board(folder_.path("logs"));
  EXPECT_FALSE(board.needs_batch_logs());
  training_.begin(board);
  epoch(board, training_, 0);
  epoch(board, training_, 1);
  EXPECT_EQ(train_run(), Json::parse(R"([["epoch_loss", 0, 0.5], ["epoch_learning_rate", 0, 1.0],
                                         ["epoch_loss", 1, 1.5], ["epoch_learning_rate", 1, 1.0]])"));
  EXPECT_EQ(validation_run(),
            Json::parse(R"([["evaluation_loss_vs_iterations", 2, 3.0], ["epoch_loss", 0, 3.0],
                            ["evaluation_loss_vs_iterations", 4, 3.0], ["epoch_loss", 1, 3.0]])"));
}

TEST_F(TensorBoard, StepsHaveTheirLoss) {
  TensorBoardLogger board(folder_.path("logs"), {.every_steps = 3});
  EXPECT_TRUE(board.needs_batch_logs());
  training_.begin(board);
  for (int number = 0; number < 3; ++number) epoch(board, training_, number);
  board.on_train_end({});
  Json of_batches = Json::array();
  for (const Json& value : train_run())
    if (value[0] == "batch_loss") of_batches.push_back(value);
  EXPECT_EQ(of_batches, Json::parse(R"([["batch_loss", 3, 1.0], ["batch_loss", 6, 2.25]])"));
}

TEST_F(TensorBoard, ParametersHaveHistograms) {
  TensorBoardLogger board(folder_.path("logs"), {.histograms_every_epochs = 2});
  training_.begin(board);
  for (int number = 0; number < 3; ++number) epoch(board, training_, number);
  Json steps = Json::array();
  for (const Json& event : events_of(files_of(folder_.path("logs/train")).at(0)))
    if (event.contains("values") && event["values"][0]["plugin"] == "histograms") {
      EXPECT_EQ(event["values"][0]["tag"], "w");
      steps.push_back(event["step"]);
    }
  EXPECT_EQ(steps, Json({0, 2}));
}

TEST_F(TensorBoard, AnEvaluationAloneHasItsRun) {
  TensorBoardLogger board(folder_.path("logs"));
  board.set_training(training_);
  training_.set_step(7);
  board.on_test_end(logs_of(3));
  EXPECT_EQ(validation_run(), Json::parse(R"([["evaluation_loss_vs_iterations", 7, 3.0]])"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("logs/train")));
}

TEST_F(TensorBoard, ARestartSaysFromWhichStep) {
  {
    TensorBoardLogger board(folder_.path("logs"), {.every_steps = 1});
    training_.begin(board);
    Checkpoint checkpoint(training_.strategy());
    board.add_state(checkpoint, "callbacks");
    epoch(board, training_, 0);
    checkpoint.save(folder_.path("checkpoints"), 2);
    epoch(board, training_, 1);
  }
  TensorBoardLogger board(folder_.path("logs"), {.every_steps = 1});
  training_.set_step(0);
  training_.begin(board);
  Checkpoint checkpoint(training_.strategy());
  board.add_state(checkpoint, "callbacks");
  checkpoint.restore(folder_.path("checkpoints/step-2")).assert_consumed();
  training_.set_step(2);
  epoch(board, training_, 1);
  board.on_train_end({});
  for (const char* run : {"logs/train", "logs/validation"}) {
    const auto files = files_of(folder_.path(run));
    ASSERT_EQ(files.size(), 2U);
    for (const Json& event : events_of(files[0])) EXPECT_NE(event["what"], "restart");
    EXPECT_EQ(events_of(files[1])[1], Json({{"step", 3}, {"what", "restart"}})) << run;
  }
}

TEST_F(TensorBoard, ASecondTrainingIsNoRestart) {
  TensorBoardLogger board(folder_.path("logs"));
  for (int run = 0; run < 2; ++run) {
    training_.begin(board);
    epoch(board, training_, run);
    board.on_train_end({});
  }
  EXPECT_EQ(files_of(folder_.path("logs/train")).size(), 2U);
  for (const std::string& file : files_of(folder_.path("logs/train")))
    for (const Json& event : events_of(file)) EXPECT_NE(event["what"], "restart");
}

TEST_F(TensorBoard, HyperparametersBelongToTheTraining) {
  TensorBoardLogger board(folder_.path("logs"), {.hyperparameters = {{"rate", 0.1}}});
  training_.begin(board);
  epoch(board, training_, 0);
  board.on_train_end({});
  const Json events = events_of(files_of(folder_.path("logs/train")).at(0));
  EXPECT_EQ(events[1]["values"][0]["tag"], "_hparams_/session_start_info");
  EXPECT_EQ(events.back()["values"][0]["tag"], "_hparams_/session_end_info");
}

TEST_F(TensorBoard, RefusesWhatCannotBe) {
  EXPECT_THROW(TensorBoardLogger("x", {.every_steps = -1}), InvalidArgument);
  EXPECT_THROW(TensorBoardLogger("x", {.histograms_every_epochs = -1}), InvalidArgument);
  TensorBoardLogger nowhere("/proc/nope");
  training_.begin(nowhere);
  try {
    epoch(nowhere, training_, 0);
    FAIL() << "written";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("/proc/nope/train/"));
  }
}

TEST_F(TensorBoard, StepsAskForNoMemory) {
  TensorBoardLogger board(folder_.path("logs"),
                          {.every_steps = 1, .writer = {.max_queue = 1000, .flush_seconds = 1e6}});
  training_.begin(board);
  board.on_epoch_begin(0, {});
  Logs of_batch = logs_of(1);
  of_batch.set("a metric of a long name", 2);
  const auto steps = [&] {
    for (int batch = 0; batch < 100; ++batch) {
      training_.set_step(training_.step() + 1);
      board.on_train_batch_end(batch, of_batch);
    }
  };
  steps();
  const std::size_t before = bench::allocations();
  steps();
  EXPECT_EQ(bench::allocations(), before);
}

}  // namespace
}  // namespace cohort::testing
