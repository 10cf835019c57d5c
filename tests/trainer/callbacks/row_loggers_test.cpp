// The rows that CsvLogger and JsonLinesLogger write, and what a restart leaves of them.
#include <cohort/trainer/callbacks/row_loggers.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "../../../benchmarks/dispatch/allocations.h"
#include "scripted_training.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Logs logs(double loss) {
  Logs logs;
  logs.set("loss", loss);
  return logs;
}

/// Two steps of an epoch, and its end.
void epoch(Callback& callback, ScriptedTraining& training, int number, Logs at_end) {
  callback.on_epoch_begin(number, {});
  for (int batch = 0; batch < 2; ++batch) {
    training.set_step(training.step() + 1);
    callback.on_train_batch_end(batch, logs(number + batch / 4.0));
  }
  callback.on_epoch_end(number, at_end);
}

/// Epochs with losses 1, 0.5, 0.25, ...; each second one has a validation.
template <class Logger>
void train(Logger& logger, ScriptedTraining& training, int epochs = 2) {
  training.set_step(0);
  training.begin(logger);
  for (int number = 0; number < epochs; ++number) {
    Logs at_end = logs(std::exp2(-number));
    if (number % 2 == 1) at_end.set("val_loss", 3);
    epoch(logger, training, number, at_end);
  }
  logger.on_train_end({});
}

class RowLoggers : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string csv_ = folder_.path("log.csv");
  const std::string json_ = folder_.path("log.jsonl");
  ScriptedTraining training_;
};

TEST_F(RowLoggers, ATableGrowsTheColumnsThatRowsHave) {
  CsvLogger table(csv_);
  EXPECT_FALSE(table.needs_batch_logs());
  train(table, training_, 3);
  EXPECT_EQ(text_of(csv_),
            "epoch,step,learning_rate,loss,val_loss\n"
            "0,2,1,1,NA\n"
            "1,4,1,0.5,3\n"
            "2,6,1,0.25,NA\n");
}

TEST_F(RowLoggers, LinesAreObjects) {
  JsonLinesLogger lines(json_);
  train(lines, training_);
  EXPECT_EQ(text_of(json_), R"({"epoch":0,"step":2,"learning_rate":1,"loss":1})"
                            "\n"
                            R"({"epoch":1,"step":4,"learning_rate":1,"loss":0.5,"val_loss":3})"
                            "\n");
}

TEST_F(RowLoggers, StepsHaveRowsToo) {
  CsvLogger table(csv_, {.every_steps = 3});
  EXPECT_TRUE(table.needs_batch_logs());
  train(table, training_);
  EXPECT_EQ(text_of(csv_),
            "epoch,step,learning_rate,loss,batch,val_loss\n"
            "0,2,1,1,NA,NA\n"
            "1,3,1,1,0,NA\n"
            "1,4,1,0.5,NA,3\n");
  JsonLinesLogger lines(json_, {.every_steps = 4});
  train(lines, training_);
  EXPECT_THAT(text_of(json_), HasSubstr(R"({"epoch":1,"batch":1,"step":4,"learning_rate":1,"loss":1.25})"));
}

TEST_F(RowLoggers, TheRateOfAnEpochIsThatOfItsLogs) {
  JsonLinesLogger lines(json_);
  training_.begin(lines);
  Logs at_end = logs(1);
  at_end.set("learning_rate", 0.5);
  epoch(lines, training_, 0, at_end);
  EXPECT_EQ(text_of(json_), "{\"epoch\":0,\"step\":2,\"learning_rate\":0.5,\"loss\":1}\n");
}

TEST_F(RowLoggers, ReplaceAFileOrAppendToIt) {
  for (const bool append : {false, true}) {
    CsvLogger table(csv_, {.append = append, .separator = ';'});
    JsonLinesLogger lines(json_, {.append = append});
    for (int run = 0; run < 2; ++run) {
      train(table, training_, 1);
      train(lines, training_, 1);
    }
    const std::string row = "0;2;1;1\n";
    EXPECT_EQ(text_of(csv_), "epoch;step;learning_rate;loss\n" + row + (append ? row + row : ""));
    EXPECT_EQ(std::ranges::count(text_of(json_), '\n'), append ? 3 : 1);
  }
}

TEST_F(RowLoggers, AppendingToATableKeepsItsColumns) {
  std::ofstream(csv_) << "epoch,\"a,b\",loss\n7,8,9\n";
  CsvLogger table(csv_, {.append = true});
  train(table, training_, 1);
  EXPECT_EQ(text_of(csv_), "epoch,\"a,b\",loss,step,learning_rate\n7,8,9,NA,NA\n0,NA,1,2,1\n");
}

TEST_F(RowLoggers, ATableThatIsNotTheirsIsRefused) {
  std::ofstream(csv_) << "name,age\nx,3\n";
  CsvLogger table(csv_, {.append = true});
  try {
    train(table, training_, 1);
    FAIL() << "appended";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr(csv_), HasSubstr("'name'")));
  }
  EXPECT_EQ(text_of(csv_), "name,age\nx,3\n");
}

TEST_F(RowLoggers, WhatIsNoNumberIsRead) {
  CsvLogger table(csv_);
  JsonLinesLogger lines(json_);
  training_.begin(table);
  training_.begin(lines);
  epoch(table, training_, 0, logs(NAN));
  epoch(lines, training_, 0, logs(-INFINITY));
  EXPECT_THAT(text_of(csv_), ::testing::EndsWith(",nan\n"));
  EXPECT_THAT(text_of(json_), ::testing::EndsWith("\"loss\":\"-Infinity\"}\n"));
}

TEST_F(RowLoggers, OthersThanTheChiefWriteNothing) {
  training_.set_reports(false);
  CsvLogger table(csv_, {.every_steps = 1});
  train(table, training_);
  EXPECT_FALSE(std::filesystem::exists(csv_));
}

TEST_F(RowLoggers, ErrorsNameTheFile) {
  CsvLogger nowhere("/proc/nope/log.csv");
  try {
    train(nowhere, training_);
    FAIL() << "written";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("/proc/nope/log.csv"));
  }
  JsonLinesLogger lines(json_);
  training_.begin(lines);
  epoch(lines, training_, 0, logs(1));
  const std::string before = text_of(json_);
  {
    const LargestFile limit(before.size() + 10);
    try {
      epoch(lines, training_, 1, logs(1));
      FAIL() << "written";
    } catch (const Unavailable& error) {
      EXPECT_THAT(error.what(), HasSubstr(json_));
    }
  }
  EXPECT_EQ(text_of(json_), before);
}

TEST_F(RowLoggers, RefuseWhatCannotBe) {
  EXPECT_THROW(CsvLogger(csv_, {.every_steps = -1}), InvalidArgument);
  EXPECT_THROW(JsonLinesLogger(json_, {.every_steps = -1}), InvalidArgument);
  for (const char separator : {'.', '3', 'n', '"', '\n'})
    EXPECT_THROW(CsvLogger(csv_, {.separator = separator}), InvalidArgument);
}

TEST_F(RowLoggers, RowsOfStepsAskForNoMemory) {
  CsvLogger table(csv_, {.every_steps = 1});
  JsonLinesLogger lines(json_, {.every_steps = 1});
  training_.begin(table);
  training_.begin(lines);
  const Logs of_batch = logs(0.1234567);
  const auto steps = [&] {
    for (int batch = 0; batch < 20; ++batch) {
      training_.set_step(training_.step() + 1);
      table.on_train_batch_end(batch, of_batch);
      lines.on_train_batch_end(batch, of_batch);
    }
  };
  table.on_epoch_begin(0, {});
  lines.on_epoch_begin(0, {});
  steps();
  const std::size_t before = bench::allocations();
  steps();
  EXPECT_EQ(bench::allocations(), before);
}

/// Trains to epoch `epochs`, with a checkpoint on the way, or from that checkpoint on.
template <class Logger>
void train_with_checkpoint(Logger& logger, ScriptedTraining& training, const std::string& folder,
                           bool goes_on, int epochs) {
  training.begin(logger);
  Checkpoint checkpoint(training.strategy());
  logger.add_state(checkpoint, "callbacks");
  constexpr int kSaved = 2;
  if (goes_on) checkpoint.restore(folder + "/step-1").assert_consumed();
  training.set_step(goes_on ? 2 * kSaved : 0);
  for (int number = goes_on ? kSaved : 0; number < epochs; ++number) {
    if (number == kSaved && !goes_on) checkpoint.save(folder, 1);
    Logs at_end = logs(number);
    if (number >= 3) at_end.set("val_loss", 1);  // a column that the table has not when it is saved
    epoch(logger, training, number, at_end);
  }
}

/// What a file has after a training, and after one that ended in the midst and went on.
template <class Logger, class Options>
void check_restart(ScriptedTraining& training, const TemporaryFolder& folder, const Options& options) {
  Logger whole(folder.path("calm"), options);
  train_with_checkpoint(whole, training, folder.path("unused"), false, 5);
  Logger first(folder.path("log"), options);
  train_with_checkpoint(first, training, folder.path("checkpoints"), false, 4);
  std::ofstream(folder.path("log"), std::ios::app) << "4,";  // killed within a row
  for (int times = 0; times < 2; ++times) {
    Logger second(folder.path("log"), options);
    train_with_checkpoint(second, training, folder.path("checkpoints"), true, 5);
    EXPECT_EQ(text_of(folder.path("log")), text_of(folder.path("calm")));
  }
}

TEST_F(RowLoggers, ARestartedTableIsAsIfItHadNeverEnded) {
  check_restart<CsvLogger>(training_, folder_, CsvLoggerOptions{.every_steps = 1});
}

TEST_F(RowLoggers, RestartedLinesAreAsIfTheyHadNeverEnded) {
  check_restart<JsonLinesLogger>(training_, folder_, JsonLinesLoggerOptions{.every_steps = 1});
}

}  // namespace
}  // namespace cohort::testing
