// What the small callbacks do, and what Progress writes.
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/trainer/callbacks/function_callback.h>
#include <cohort/trainer/callbacks/model_checkpoint.h>
#include <cohort/trainer/callbacks/progress.h>
#include <cohort/trainer/callbacks/terminate_on_nan.h>

#include "../../../benchmarks/dispatch/allocations.h"
#include "scripted_training.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  for (const FoundCheckpoint& found : list_checkpoints(folder)) steps.push_back(found.step);
  return steps;
}

/// Trains epochs with these values of val_loss.
void train(ModelCheckpoint& callback, ScriptedTraining& training, const std::vector<double>& values) {
  training.begin(callback);
  for (int epoch = 0; epoch < static_cast<int>(values.size()); ++epoch)
    training.epoch(callback, epoch, "val_loss", values[static_cast<std::size_t>(epoch)]);
  callback.on_train_end({});
}

TEST(TerminateOnNaN, EndsTheTrainingAtOnce) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    TerminateOnNaN terminate;
    ScriptedTraining training;
    training.begin(terminate);
    Logs logs;
    logs.set("loss", 1);
    terminate.on_train_batch_end(0, logs);
    EXPECT_FALSE(training.stopped());
    logs.set("loss", bad);
    terminate.on_train_batch_end(1, logs);
    EXPECT_TRUE(training.stopped());
  }
}

TEST(TerminateOnNaN, NeedsNoLogsOfBatchesToLookAtEpochs) {
  EXPECT_TRUE(TerminateOnNaN().needs_batch_logs());
  TerminateOnNaN terminate(TerminateOnNaN::Looks::kEachEpoch);
  EXPECT_FALSE(terminate.needs_batch_logs());
  ScriptedTraining training;
  training.begin(terminate);
  training.epoch(terminate, 0, "loss", std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(training.stopped());
}

TEST(FunctionCallback, CallsWhatIsThere) {
  std::vector<std::string> calls;
  FunctionCallback callback({.on_train_begin = [&](const Logs&) { calls.emplace_back("begin"); },
                             .on_epoch_end = [&](int, Logs& logs) { logs.set("more", 1); }});
  ScriptedTraining training;
  training.begin(callback);
  const Logs logs = training.epoch(callback, 0, "loss", 2);
  EXPECT_THAT(calls, ElementsAre("begin"));
  EXPECT_NE(logs.find("more"), nullptr);
}

TEST(ModelCheckpoint, SavesAfterEachEpoch) {
  const TemporaryFolder folder;
  ModelCheckpoint save(folder.path().string(), {.max_to_keep = 0});
  ScriptedTraining training;
  train(save, training, {0.5, 0.7, 0.3});
  EXPECT_THAT(steps_in(folder.path().string()), ElementsAre(1, 2, 3));
}

TEST(ModelCheckpoint, SavesWhatIsBetterThanAllBefore) {
  const TemporaryFolder folder;
  ModelCheckpoint save(folder.path().string(), {.save_best_only = true, .max_to_keep = 0});
  ScriptedTraining training;
  train(save, training, {0.5, 0.7, 0.3, 0.3, 0.9, 0.1});
  EXPECT_THAT(steps_in(folder.path().string()), ElementsAre(1, 3, 6));
  EXPECT_EQ(save.best(), 0.1);
}

TEST(ModelCheckpoint, KeepsTheBestBesideTheNewest) {
  const TemporaryFolder folder;
  ModelCheckpoint save(folder.path().string(), {.max_to_keep = 1});
  ScriptedTraining training;
  train(save, training, {0.5, 0.2, 0.3, 0.4});
  EXPECT_THAT(steps_in(folder.path().string()), ElementsAre(2, 4));
}

TEST(ModelCheckpoint, SavesAgainWhatARestartComesToAgain) {
  const TemporaryFolder folder;
  ScriptedTraining training;
  ModelCheckpoint save(folder.path().string());
  train(save, training, {0.5, 0.4});
  training.set_step(1);
  train(save, training, {0.3});
  Checkpoint saved(training.strategy());
  Tensor weight = Tensor::scalar(-1.0F);
  saved.add("w", weight);
  saved.restore(folder.path().string() + "/step-2");
  EXPECT_EQ(weight.item<float>(), 0);
}

TEST(ModelCheckpoint, RefusesOptionsThatDoNotGoTogether) {
  EXPECT_THROW(ModelCheckpoint("x", {.save_best_only = true, .save_every_steps = 2}), InvalidArgument);
  EXPECT_THROW(ModelCheckpoint("x", {.save_every_steps = -2}), InvalidArgument);
}

// What Progress writes, where, and that drawing asks for no memory.

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A stream in memory.
class Text {
 public:
  Text() : stream_(open_memstream(&text_, &length_)) {}
  ~Text() {
    std::fclose(stream_);
    std::free(text_);  // NOLINT(*-no-malloc): open_memstream says so
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  [[nodiscard]] std::FILE* stream() const { return stream_; }
  [[nodiscard]] std::string written() const { return {text_, length_}; }

 private:
  char* text_ = nullptr;
  std::size_t length_ = 0;
  std::FILE* stream_;
};

Logs logs(double loss) {
  Logs logs;
  logs.set("loss", loss);
  return logs;
}

/// Two of the four steps of epoch 1, or all with the epoch's end.
std::string progress_of(const ProgressOptions& options, bool ends, bool reports = true) {
  const Text text;
  ProgressOptions to_text = options;
  to_text.stream = text.stream();
  Progress progress(to_text);
  ScriptedTraining training({.epochs = 5, .steps = 4});
  training.set_reports(reports);
  progress.set_training(training);
  progress.on_epoch_begin(1, {});
  for (int batch = 0; batch < (ends ? 4 : 2); ++batch) progress.on_train_batch_end(batch, logs(0.25));
  Logs of_epoch = logs(0.125);
  of_epoch.set("val_loss", 0.5);
  if (ends) progress.on_epoch_end(1, of_epoch);
  return text.written();
}

TEST(Progress, DrawsOneLineAnew) {
  const std::string text = progress_of({.style = ProgressStyle::kLine, .seconds = 0}, false);
  EXPECT_THAT(text,
              AllOf(StartsWith("\repoch 2/5  1/4 [=====>"), HasSubstr("\repoch 2/5  2/4 [==========>")));
  EXPECT_THAT(text, AllOf(HasSubstr("  loss 0.25  "), HasSubstr("s/step  0:00 left"), Not(HasSubstr("\n"))));
}

TEST(Progress, WritesPlainLinesWhereThereIsNoTerminal) {
  const std::string text = progress_of({.seconds = 0}, false);
  EXPECT_THAT(text, AllOf(StartsWith("epoch 2/5: step 1/4, loss 0.25, "), HasSubstr("\nepoch 2/5: step 2/4"),
                          EndsWith(" left\n"), Not(HasSubstr("\r"))));
}

TEST(Progress, WritesALineForEachEpochInJobLogs) {
  const std::string text = progress_of({.seconds = 3600}, true);
  EXPECT_THAT(text, AllOf(StartsWith("epoch 2/5: 4 steps in "), EndsWith(", loss 0.125, val_loss 0.5\n")));
}

TEST(Progress, TheChiefAloneWrites) {
  EXPECT_EQ(progress_of({.style = ProgressStyle::kLine, .seconds = 0}, true, false), "");
}

TEST(Progress, AsksForNoMemory) {
  ProgressOptions options{.style = ProgressStyle::kLine, .seconds = 0};
  options.stream = std::fopen("/dev/null", "w");
  {
    Progress progress(options);
    ScriptedTraining training({.epochs = 5, .steps = 100});
    progress.set_training(training);
    progress.on_epoch_begin(0, {});
    const Logs of_batch = logs(0.25);
    progress.on_train_batch_end(0, of_batch);
    const std::size_t before = bench::allocations();
    for (int batch = 1; batch < 100; ++batch) progress.on_train_batch_end(batch, of_batch);
    EXPECT_EQ(bench::allocations() - before, 0U);
  }
  std::fclose(options.stream);
}

TEST(Progress, RefusesNegativeSeconds) { EXPECT_THROW(Progress({.seconds = -1}), InvalidArgument); }

}  // namespace
}  // namespace cohort::testing
