// A fit that ends at any batch goes on from its checkpoint as if nothing had happened: the same bits, the
// same examples, the same history, the same log.
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/checkpoint/preemption_checkpoint_handler.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callbacks/early_stopping.h>
#include <cohort/trainer/callbacks/function_callback.h>
#include <cohort/trainer/callbacks/row_loggers.h>
#include <cohort/trainer/trainer.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "linear_model.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Numbers = std::vector<double>;

/// What a training leaves behind.
struct Trace {
  Numbers parameters;
  Numbers slots;
  std::map<std::int64_t, Numbers> examples;  ///< by step: the first input of each
  std::string history;
  std::string table;  ///< of a CsvLogger
  friend bool operator==(const Trace&, const Trace&) = default;
};

struct Killed {};

/// Ends the training after so many of its own steps, on all workers, as a kill does.
class Kill : public Callback {
 public:
  explicit Kill(std::optional<int> after) : after_(after) {}
  void on_train_batch_end(std::int64_t /*batch*/, const Logs& /*logs*/) override {
    if (++steps_ == after_) throw Killed();
  }

 private:
  std::optional<int> after_;
  int steps_ = 0;
};

struct Run {
  std::string log;          ///< of a CsvLogger
  std::string folder = {};  ///< empty: without checkpoints
  std::optional<int> kill_after = {};
  std::optional<std::int64_t> steps_per_epoch = {};
  std::int64_t every = 1;
};

/// Trains as a program does that is started anew, and adds to the trace.
void train(const Strategy& strategy, const Run& run, Trace& trace) {
  const auto scope = strategy.scope();
  const LinearModel model;
  Adam optimizer({.learning_rate = 0.05});
  std::vector<Numbers> seen(static_cast<std::size_t>(strategy.extended().local_replicas()));
  using Batch = LinearModel::Batch;
  Trainer<Batch> trainer(
      strategy,
      {.train =
           [&](ReplicaContext& replica, const Batch& mine) {
             const int local = replica.replica_id_in_sync_group() - strategy.extended().first_replica_id();
             seen[static_cast<std::size_t>(local)] = numbers(mine.first);
             const Tensor outputs = model.forward(mine);
             optimizer.apply_gradients(model.gradients(mine, outputs, {}));
             return model.loss(mine, outputs);
           },
       .test = [&](const Batch& mine) { return StepOutcome(model.loss(mine, model.forward(mine))); },
       .parameters = {model.parameters()[0], model.parameters()[1]},
       .optimizer = &optimizer});
  class Record : public Callback {
   public:
    Record(Trace& record, const std::vector<Numbers>& batches) : trace_(record), seen_(batches) {}
    void on_train_batch_end(std::int64_t /*batch*/, const Logs& /*logs*/) override {
      Numbers& step = trace_.examples[training().step()];
      step.clear();
      for (const Numbers& part : seen_) step.insert(step.end(), part.begin(), part.end());
    }

   private:
    Trace& trace_;
    const std::vector<Numbers>& seen_;
  };
  Record record(trace, seen);
  Kill kill(run.kill_after);
  CsvLogger table(run.log, {.every_steps = 2});
  const auto data = Dataset<Batch>::from_tensor_slices(linear_examples(13)).shuffle({.seed = 3}).batch(4);
  const History history =
      trainer.fit(data, {.epochs = 3,
                         .steps_per_epoch = run.steps_per_epoch,
                         .validation_data = linear_batches(5, 2),
                         .callbacks = {record, table, kill},
                         .checkpoint = {.folder = run.folder, .manager = {.save_every_steps = run.every}}});
  trace.parameters = numbers(model.parameters()[0].read());
  trace.slots = numbers(optimizer.slots(model.parameters()[0])[1].read());
  trace.history = history.to_text();
  std::ostringstream text;
  text << std::ifstream(run.log).rdbuf();
  trace.table = text.str();
}

/// Kills it once at each of its steps in turn, of many replicas at some, and lets it go on.
void check_resume(const Strategy& strategy, const std::string& folder, std::optional<std::int64_t> per_epoch,
                  std::int64_t every) {
  Trace whole;
  train(strategy, {.log = folder + "/whole.csv", .steps_per_epoch = per_epoch}, whole);
  const int steps = static_cast<int>(whole.examples.size());
  const int stride = strategy.num_replicas_in_sync() > 3 ? 5 : 1;
  for (int killed = 1; killed <= steps; killed += stride) {
    Run run{.log = folder + "/killed.csv",
            .folder = fmt::format("{}/{}-{}", folder, every, killed),
            .kill_after = killed,
            .steps_per_epoch = per_epoch,
            .every = every};
    Trace trace;
    EXPECT_THROW(train(strategy, run, trace), Killed);
    run.kill_after = {};
    train(strategy, run, trace);
    EXPECT_EQ(trace.parameters, whole.parameters) << "killed after " << killed;
    EXPECT_EQ(trace.slots, whole.slots) << "killed after " << killed;
    EXPECT_EQ(trace.examples, whole.examples) << "killed after " << killed;
    EXPECT_EQ(trace.history, whole.history) << "killed after " << killed;
    EXPECT_EQ(trace.table, whole.table) << "killed after " << killed;
  }
}

class Resume : public ::testing::TestWithParam<int> {
 protected:
  const TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Replicas, Resume, ::testing::Values(1, 2, 3, 4, 7),
                         ::testing::PrintToStringParamName());

TEST_P(Resume, GoesOnAtAnyBatch) { check_resume(mirrored(GetParam()), folder_.path().string(), {}, 1); }
TEST_P(Resume, RepeatsTheStepsSinceTheCheckpoint) {
  check_resume(mirrored(GetParam()), folder_.path().string(), {}, 5);
}
TEST_P(Resume, GoesOnInThePassOfEarlierEpochs) {
  check_resume(mirrored(GetParam()), folder_.path().string(), 3, 1);
}

/// The parameters after a fit of a program of its own, which goes on from what is in the folder.
Numbers parameters_after(const Strategy& strategy, const FitOptions<LinearModel::Batch>& options,
                         const UpdateOptions& updates = {}) {
  const StrategyScope scope = strategy.scope();
  LinearModel model;
  Sgd optimizer({.learning_rate = 0.1});
  optimizer.set_update_options(updates);
  Trainer<LinearModel::Batch> trainer(strategy, model, optimizer);
  static_cast<void>(trainer.fit(linear_batches(13, 4), options));
  return numbers(model.parameters()[0].read());
}

TEST_P(Resume, GoesOnWithMoreEpochsAfterTheLast) {
  const Strategy strategy = mirrored(GetParam());
  const FitCheckpoint checkpoint{.folder = (folder_.path() / "ended").string(),
                                 .manager = {.save_every_steps = 5}};
  static_cast<void>(parameters_after(strategy, {.epochs = 2, .max_steps = 1000, .checkpoint = checkpoint}));
  EXPECT_EQ(parameters_after(strategy, {.epochs = 4, .checkpoint = checkpoint}),
            parameters_after(strategy, {.epochs = 4}));
}

TEST_P(Resume, LosesNoGradientThatIsOnlyAddedUp) {
  const Strategy strategy = mirrored(GetParam());
  const UpdateOptions updates{.accumulation_steps = 3};
  const Numbers whole = parameters_after(strategy, {.epochs = 3}, updates);
  for (std::int64_t ended = 1; ended <= 6; ++ended) {
    const FitCheckpoint checkpoint{.folder = (folder_.path() / std::to_string(ended)).string(),
                                   .manager = {.save_every_steps = 300}};
    std::int64_t steps = 0;
    FunctionCallback end({.on_train_batch_end = [&](std::int64_t, const Logs&) {
      if (++steps == ended) std::raise(SIGTERM);
    }});
    EXPECT_THROW(static_cast<void>(parameters_after(
                     strategy, {.epochs = 3, .callbacks = {end}, .checkpoint = checkpoint}, updates)),
                 Preempted);
    EXPECT_EQ(list_checkpoints(checkpoint.folder).back().step % 3, 0);
    EXPECT_EQ(parameters_after(strategy, {.epochs = 3, .checkpoint = checkpoint}, updates), whole)
        << "asked to end after step " << ended;
  }
}

TEST_P(Resume, RefusesCheckpointsThatWouldLoseGradients) {
  const Strategy strategy = mirrored(GetParam());
  const auto fit = [&](std::int64_t every, std::int64_t max_steps) {
    static_cast<void>(parameters_after(strategy,
                                       {.max_steps = max_steps,
                                        .checkpoint = {.folder = (folder_.path() / "refused").string(),
                                                       .manager = {.save_every_steps = every}}},
                                       {.accumulation_steps = 3}));
  };
  EXPECT_THAT([&] { fit(4, 3); }, ThrowsMessage<InvalidArgument>(
                                      HasSubstr("make checkpoint.manager.save_every_steps a multiple of 3")));
  EXPECT_THAT([&] { fit(6, 2); },
              ThrowsMessage<InvalidArgument>(HasSubstr("make max_steps a multiple of 3")));
}

TEST_P(Resume, KeepsTwoCallbacksOfAKindApart) {
  const Strategy strategy = mirrored(GetParam());
  const FitCheckpoint checkpoint{.folder = (folder_.path() / "two").string(),
                                 .manager = {.save_every_steps = 4}};
  std::vector<int> waits;
  for (const int epochs : {3, 4}) {
    EarlyStopping patient({.monitor = "loss", .min_delta = 1e9, .patience = 100});
    EarlyStopping eager({.monitor = "loss", .patience = 100});
    static_cast<void>(parameters_after(
        strategy, {.epochs = epochs, .callbacks = {patient, eager}, .checkpoint = checkpoint}));
    waits = {patient.wait(), eager.wait()};
  }
  EXPECT_EQ(waits, (std::vector<int>{3, 0})) << "the loss falls, but by less than 1e9";
}

TEST_P(Resume, EndsWhereACallbackStopsItAtItsBeginning) {
  const Strategy strategy = mirrored(GetParam());
  const FitCheckpoint checkpoint{.folder = (folder_.path() / "stopped").string(),
                                 .manager = {.save_every_steps = 4}};
  static_cast<void>(parameters_after(strategy, {.epochs = 1, .checkpoint = checkpoint}));
  class Stop : public Callback {
   public:
    void on_train_begin(const Logs& /*logs*/) override { training().stop(); }
    void on_train_batch_end(std::int64_t /*batch*/, const Logs& /*logs*/) override { ++steps; }
    int steps = 0;
  };
  Stop stop;
  static_cast<void>(parameters_after(strategy, {.epochs = 3, .callbacks = {stop}, .checkpoint = checkpoint}));
  EXPECT_EQ(stop.steps, 0);
}

TEST_P(Resume, CountsTheStepsOfATraining) {
  const Strategy strategy = mirrored(GetParam());
  const StrategyScope scope = strategy.scope();
  LinearModel model;
  Sgd optimizer({.learning_rate = 0.1});
  Trainer<LinearModel::Batch> trainer(strategy, model, optimizer);
  std::int64_t step = 0;
  class Count : public Callback {
   public:
    explicit Count(std::int64_t& number) : step_(number) {}
    void on_train_batch_end(std::int64_t /*batch*/, const Logs& /*logs*/) override {
      step_ = training().step();
    }

   private:
    std::int64_t& step_;
  };
  Count count(step);
  const auto data = linear_batches(13, 4);
  static_cast<void>(trainer.fit(data, {.epochs = 2, .callbacks = {count}}));
  EXPECT_EQ(step, 8);
  static_cast<void>(trainer.fit(data, {.epochs = 3, .initial_epoch = 2, .callbacks = {count}}));
  EXPECT_EQ(step, 12) << "goes on";
  const FitCheckpoint checkpoint{.folder = (folder_.path() / "counted").string(),
                                 .manager = {.save_every_steps = 2}};
  static_cast<void>(trainer.fit(data, {.callbacks = {count}, .checkpoint = checkpoint}));
  EXPECT_EQ(step, list_checkpoints(checkpoint.folder).back().step);
}

TEST_P(Resume, EndsAnEpochThatHasMoreStepsThanItShallHave) {
  const Strategy strategy = mirrored(GetParam());
  const FitCheckpoint checkpoint{.folder = (folder_.path() / "shorter").string(),
                                 .manager = {.save_every_steps = 1}};
  static_cast<void>(parameters_after(
      strategy, {.epochs = 2, .steps_per_epoch = 4, .max_steps = 3, .checkpoint = checkpoint}));
  std::int64_t steps = 0;
  FunctionCallback count({.on_train_batch_end = [&](std::int64_t, const Logs&) { ++steps; }});
  static_cast<void>(parameters_after(
      strategy, {.epochs = 2, .steps_per_epoch = 2, .callbacks = {count}, .checkpoint = checkpoint}));
  EXPECT_EQ(steps, 1) << "what is left of the pass";
}

}  // namespace
}  // namespace cohort::testing
