// What a training comes to, and what is told about it. The numbers are those of the original with one
// replica.

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callbacks/function_callback.h>
#include <cohort/trainer/trainer.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "linear_model.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointwise;

/// Matches a function that ends in InvalidArgument with this in its text.
auto refuses(const std::string& text) {
  return ::testing::Truly([text](const std::function<void()>& function) {
    return message_of(ErrorCode::kInvalidArgument, function).find(text) != std::string::npos;
  });
}

class Fit : public WithReplicas {
 protected:
  Fit() : scope_(strategy_.scope()), trainer_(strategy_, model_, optimizer_) {}

  [[nodiscard]] std::vector<double> parameters() const {
    std::vector<double> values = numbers(model_.parameters()[0].read());
    values.push_back(numbers(model_.parameters()[1].read())[0]);
    return values;
  }

  StrategyScope scope_;
  LinearModel model_;
  Sgd optimizer_{{.learning_rate = 0.1}};
  Trainer<LinearModel::Batch> trainer_;
};
COHORT_INSTANTIATE_REPLICAS(Fit);

MATCHER_P(NearlyAre, expected, "") {
  return ::testing::ExplainMatchResult(Pointwise(::testing::DoubleNear(1e-5), expected), arg,
                                       result_listener);
}

using Numbers = std::vector<double>;

TEST_P(Fit, ScalesTheLossOfGradientsAlone) {
  LinearModel plain;
  Sgd unscaled({.learning_rate = 0.1});
  Trainer<LinearModel::Batch> without(strategy_, plain, unscaled);
  const History expected = without.fit(linear_batches(13, 4), {.epochs = 2});
  optimizer_.set_update_options({.loss_scale = LossScaleOptions{}});
  const History history = trainer_.fit(linear_batches(13, 4), {.epochs = 2});
  EXPECT_EQ(history.to_text(), expected.to_text());
  for (const std::size_t parameter : {0U, 1U})
    EXPECT_EQ(numbers(model_.parameters()[parameter].read()), numbers(plain.parameters()[parameter].read()));
}

TEST_P(Fit, RefusesToEvaluateNothing) {
  EXPECT_THAT([&] { static_cast<void>(trainer_.evaluate(linear_batches(0, 4))); }, refuses("not one batch"));
}

TEST_P(Fit, WeighsUnevenBatchesByExamples) {
  const History history = trainer_.fit(linear_batches(13, 4), {.epochs = 2});
  EXPECT_THAT(history.of("loss"), NearlyAre(Numbers{0.800285339, 0.405724674}));
  EXPECT_THAT(parameters(), NearlyAre(Numbers{1.04083443, -0.24844721, 0.475314349}));
  EXPECT_EQ(optimizer_.iterations(), 8);
}

TEST_P(Fit, ReplicasWithoutExamplesCountForNothing) {
  const History history = trainer_.fit(linear_batches(9, 4), {.epochs = 2});
  EXPECT_THAT(history.of("loss"), NearlyAre(Numbers{0.417106926, 0.164407685}));
  EXPECT_THAT(parameters(), NearlyAre(Numbers{0.742137551, -0.0467059724, 0.451692313}));
}

TEST_P(Fit, GoesOnInTheSamePassWhereEpochsHaveSteps) {
  const History history = trainer_.fit(linear_batches(16, 4), {.epochs = 3, .steps_per_epoch = 2});
  EXPECT_THAT(history.of("loss"), NearlyAre(Numbers{0.454384685, 0.883600295, 0.131252751}));
}

TEST_P(Fit, EndsAnEpochWhereTheDatasetEnds) {
  const History history = trainer_.fit(linear_batches(16, 4), {.epochs = 2, .steps_per_epoch = 5});
  EXPECT_THAT(history.of("loss"), NearlyAre(Numbers{0.66899246, 0.35146156}));
  EXPECT_EQ(optimizer_.iterations(), 8);
}

/// Writes down what it is told.
class Witness : public Callback {
 public:
  explicit Witness(std::optional<std::int64_t> stop_after = {}) : stop_after_(stop_after) {}

  void on_train_begin(const Logs& /*logs*/) override { note("train("); }
  void on_train_end(const Logs& logs) override { note(")train", logs); }
  void on_epoch_begin(int epoch, const Logs& /*logs*/) override { note(fmt::format("epoch{}(", epoch)); }
  void on_epoch_end(int epoch, Logs& logs) override {
    note(fmt::format(")epoch{}", epoch), logs);
    logs.set("seen", epoch);
  }
  void on_train_batch_begin(std::int64_t batch, const Logs& /*logs*/) override {
    note(fmt::format("{}(", batch));
  }
  void on_train_batch_end(std::int64_t batch, const Logs& logs) override {
    note(fmt::format("){}", batch), logs);
    if (training().step() == stop_after_) training().stop();
  }
  void on_test_begin(const Logs& /*logs*/) override { note("test("); }
  void on_test_end(const Logs& logs) override { note(")test", logs); }
  void on_test_batch_begin(std::int64_t batch, const Logs& /*logs*/) override {
    note(fmt::format("t{}(", batch));
  }
  void on_test_batch_end(std::int64_t batch, const Logs& /*logs*/) override {
    note(fmt::format(")t{}", batch));
  }
  void on_predict_begin(const Logs& /*logs*/) override { note("predict("); }
  void on_predict_end(const Logs& /*logs*/) override { note(")predict"); }
  void on_predict_batch_begin(std::int64_t batch, const Logs& /*logs*/) override {
    note(fmt::format("p{}(", batch));
  }
  void on_predict_batch_end(std::int64_t batch, const Logs& /*logs*/) override {
    note(fmt::format(")p{}", batch));
  }

  std::vector<std::string> told;

 private:
  void note(std::string hook, const Logs& logs = {}) {
    for (const auto& [name, value] : logs) hook += " " + name;
    told.push_back(std::move(hook));
  }

  std::optional<std::int64_t> stop_after_;
};

TEST_P(Fit, CallsCallbacksInOrder) {
  Witness witness;
  const auto data = linear_batches(8, 4);
  const History history =
      trainer_.fit(data, {.validation_data = linear_batches(4, 4), .callbacks = {witness}});
  EXPECT_THAT(witness.told, ElementsAre("train(", "epoch0(", "0(", ")0", "1(", ")1", "test(", "t0(", ")t0",
                                        ")test loss", ")epoch0 loss val_loss", ")train loss val_loss seen"));
  EXPECT_EQ(history.of("seen"), Numbers{0});
}

TEST_P(Fit, StopsAfterTheBatchThatIsUnderWay) {
  Witness witness(3);
  const History history = trainer_.fit(linear_batches(8, 4), {.epochs = 5, .callbacks = {witness}});
  EXPECT_EQ(history.epochs().size(), 2U);
  EXPECT_EQ(optimizer_.iterations(), 3);
  EXPECT_TRUE(trainer_.training().stopped());
  static_cast<void>(trainer_.fit(linear_batches(8, 4)));
  EXPECT_FALSE(trainer_.training().stopped());
}

TEST_P(Fit, BeginsWithALaterEpoch) {
  Witness witness;
  const History history =
      trainer_.fit(linear_batches(4, 4), {.epochs = 4, .initial_epoch = 2, .callbacks = {witness}});
  EXPECT_EQ(history.epochs().front().number, 2);
  EXPECT_EQ(optimizer_.iterations(), 2);
  EXPECT_THAT(trainer_.fit(linear_batches(4, 4), {.epochs = 2, .initial_epoch = 2}).epochs(), IsEmpty());
}

TEST_P(Fit, ValidatesAfterSomeEpochs) {
  const auto data = linear_batches(10, 4);
  const auto test = linear_batches(7, 4);
  EXPECT_THAT(trainer_.fit(data, {.epochs = 3, .validation_data = test, .validation_freq = 2}).of("val_loss"),
              NearlyAre(Numbers{0.0512869768}));
  EXPECT_EQ(trainer_.fit(data, {.epochs = 3, .validation_data = test, .validation_epochs = {1, 3}})
                .of("val_loss")
                .size(),
            2U);
}

TEST_P(Fit, EvaluatesAndPredictsInTheOrderOfTheDataset) {
  EXPECT_NEAR(*trainer_.evaluate(linear_batches(9, 4)).find("loss"), 0.513802052, 1e-6);
  EXPECT_NEAR(*trainer_.evaluate(linear_batches(10, 4), {.steps = 1}).find("loss"), 0.656533182, 1e-6);
  const Tensor predictions = trainer_.predict(linear_batches(5, 4));
  EXPECT_EQ(predictions.shape(), (Shape{5, 1}));
  EXPECT_THAT(numbers(predictions), NearlyAre(Numbers{-0.025, 0.19375, 0.4125, 0.1, 0.31875}));
  EXPECT_EQ(trainer_.predict(linear_batches(16, 4), {.steps = 2}).shape(), (Shape{8, 1}));
}

/// Reads the logs of batches.
class BatchLosses : public Callback {
 public:
  [[nodiscard]] bool needs_batch_logs() const override { return true; }
  void on_train_batch_end(std::int64_t /*batch*/, const Logs& logs) override {
    losses.push_back(*logs.find("loss"));
  }
  Numbers losses;
};

TEST_P(Fit, TellsTheLossSinceTheEpochBegan) {
  BatchLosses batches;
  const History history = trainer_.fit(linear_batches(10, 4), {.callbacks = {batches}});
  ASSERT_EQ(batches.losses.size(), 3U);
  EXPECT_NEAR(batches.losses[0], 0.656533182, 1e-6);
  EXPECT_EQ(batches.losses[2], history.of("loss")[0]);
}

TEST_P(Fit, RefusesWhatCannotBe) {
  const auto data = linear_batches(8, 4);
  EXPECT_THAT([&] { trainer_.fit(data, {.epochs = -1}); }, refuses("epochs is -1"));
  EXPECT_THAT([&] { trainer_.fit(data, {.initial_epoch = -1}); }, refuses("initial_epoch"));
  EXPECT_THAT([&] { trainer_.fit(data, {.steps_per_epoch = 0}); }, refuses("at least 1, or unset"));
  EXPECT_THAT([&] { trainer_.fit(data, {.validation_data = data, .validation_freq = 0}); },
              refuses("validation_freq"));
  EXPECT_THAT(
      [&] {
        trainer_.fit(data, {.class_weight = {{3, -1.0}}});
      },
      refuses("class_weight of class 3 is -1"));
  EXPECT_THAT([&] { trainer_.fit(data.repeat()); }, refuses("steps_per_epoch"));
  EXPECT_THAT([&] { trainer_.fit(data.take(0)); }, refuses("not one batch"));
  EXPECT_THAT([&] { trainer_.fit(data.filter([](const auto&) { return false; })); },
              refuses("not one batch"));
  EXPECT_THAT([&] { static_cast<void>(trainer_.evaluate(data, {.steps = 0})); }, refuses("steps is 0"));
}

TEST_P(Fit, RefusesCallsWithinItself) {
  const auto data = linear_batches(8, 4);
  Trainer other(strategy_, model_, optimizer_);
  Logs seen;
  FunctionCallback evaluates({.on_train_begin = [&](const Logs&) { seen = other.evaluate(data); }});
  trainer_.fit(data, {.callbacks = {evaluates}});
  EXPECT_GT(seen.at("loss"), 0);
  FunctionCallback evaluates_itself({.on_train_begin = [&](const Logs&) { seen = trainer_.evaluate(data); }});
  EXPECT_THAT(
      message_of(ErrorCode::kWrongContext, [&] { trainer_.fit(data, {.callbacks = {evaluates_itself}}); }),
      ::testing::HasSubstr("evaluate was called within fit of the same Trainer"));
  EXPECT_NO_THROW(trainer_.fit(data));
}

TEST(Logs, NameWhatTheyHave) {
  Logs logs;
  logs.set("loss", 1);
  logs.set("accuracy", 0.5);
  EXPECT_EQ(logs.at("accuracy"), 0.5);
  EXPECT_THAT([&] { static_cast<void>(logs.at("acuracy")); },
              refuses("no 'acuracy'; they have [loss, accuracy]"));
}

TEST(FitByHand, RunsStepFunctions) {
  const OneDeviceStrategy strategy;
  const auto scope = strategy.scope();
  const LinearModel model;
  using Batch = LinearModel::Batch;
  Trainer<Batch> trainer(strategy,
                         {.train = [&](const Batch& mine) { return model.loss(mine, model.forward(mine)); }});
  EXPECT_NEAR(trainer.fit(linear_batches(10, 4)).of("loss")[0], 0.89558208, 1e-6);
  EXPECT_THAT([&] { static_cast<void>(trainer.evaluate(linear_batches(10, 4))); }, refuses("without `test`"));

  Trainer<Batch> sums(strategy, {.train = [](ReplicaContext& replica, const Batch& mine) -> StepOutcome {
                        EXPECT_EQ(replica.num_replicas_in_sync(), 1);
                        return LossSum{.sum = 3, .examples = static_cast<double>(rows_of(mine))};
                      }});
  EXPECT_NEAR(sums.fit(linear_batches(10, 5)).of("loss")[0], 0.6, 1e-12);
}

TEST(HistoryText, IsReadBackToTheSameBits) {
  History history;
  Logs logs;
  logs.set("loss", 1.0 / 3);
  logs.set("a name", std::numeric_limits<double>::infinity());
  history.add(0, logs);
  history.add(7, {});
  const History back = History::from_text(history.to_text());
  ASSERT_EQ(back.epochs().size(), 2U);
  EXPECT_EQ(back.epochs()[1].number, 7);
  EXPECT_EQ(back.of("loss"), Numbers{1.0 / 3});
  EXPECT_EQ(back.of("a name"), history.of("a name"));
  EXPECT_THAT([] { static_cast<void>(History::from_text("x\n")); }, refuses("'x'"));
}

// A Trainer of workers that are threads of this process.

class MultiWorkerTrainer : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  template <class Check>
  static void on_every_worker(Check check) {
    const auto [workers, devices] = GetParam();
    for_each_worker(workers, [&check, devices = devices](Bootstrap& worker) { check(worker, devices); });
  }
};
INSTANTIATE_TEST_SUITE_P(WorkersAndDevices, MultiWorkerTrainer,
                         ::testing::Values(std::pair{1, 1}, std::pair{2, 1}, std::pair{3, 1}, std::pair{2, 2},
                                           std::pair{4, 1}, std::pair{5, 1}));

TEST_P(MultiWorkerTrainer, TrainsAsOneReplica) { on_every_worker(check_fit); }
TEST_P(MultiWorkerTrainer, NamesTheWorkerWhoseStepThrows) { on_every_worker(check_step_that_throws); }
TEST_P(MultiWorkerTrainer, NamesTheWorkerWhoseCallbackThrows) { on_every_worker(check_callback_that_throws); }
TEST_P(MultiWorkerTrainer, NamesTheWorkerWhoseMetricThrows) { on_every_worker(check_metric_that_throws); }
TEST_P(MultiWorkerTrainer, NamesTheWorkerWhoseDatasetThrows) { on_every_worker(check_dataset_that_throws); }

}  // namespace
}  // namespace cohort::testing
