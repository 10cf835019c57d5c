// Recorded lines of callbacks: in which order their hooks are called, and what they do to a fit.
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <cohort/trainer/callbacks/early_stopping.h>
#include <cohort/trainer/callbacks/function_callback.h>
#include <cohort/trainer/callbacks/learning_rate_scheduler.h>
#include <cohort/trainer/callbacks/swap_averages.h>
#include <cohort/trainer/callbacks/terminate_on_nan.h>

#include "../scenarios/checkpoints.h"
#include "families.h"
#include "fitting.h"

namespace cohort::conformance {
namespace {

// Recorded lines of what callbacks do to a fit.

constexpr std::string_view kStop = "a stop holds at once";

/// The hook and its argument in the text of a line: `... in on_epoch_end(0), fit n=10 ...`.
Json hook_in(const std::string& text) {
  const std::size_t begin = text.find("on_");
  const std::size_t open = text.find('(', begin);
  const std::string argument = text.substr(open + 1, text.find(')', open) - open - 1);
  Json call{text.substr(begin, open - begin)};
  call.push_back(argument == "None" ? Json::array() : Json(std::stoi(argument)));
  return call;
}

Json stopped(const Record& record) {
  const Json hook = hook_in(record.arguments.at("op"));
  Fitting fitting(strategy_named(strategy_of(record)));
  Json calls = Json::array();
  Recorder recorder(calls, "", [&](const Json& call) {
    if (call == hook) fitting.trainer().training().stop();
  });
  const History history = fitting.trainer().fit(fitting.data(2), {.epochs = 3, .callbacks = {recorder}});
  calls.erase(0);
  return {{"calls", calls}, {"epochs", epochs_of(history)}, {"iterations", fitting.optimizer().iterations()}};
}

/// A stop outside batches ends fit before the next batch.
Json stopped_at_once(const Record& record) {
  Json outcome = record.outcome;
  Json& calls = outcome.at("calls");
  const bool in_epoch = case_of(record) == "stop_training_on_epoch_begin";
  if (in_epoch) {
    calls.erase(calls.size() - 4);  // the batch
    calls.erase(calls.size() - 3);
    outcome["iterations"] = 5;
    return outcome;
  }
  return {
      {"calls", Json::array({calls.front(), calls.back()})}, {"epochs", Json::array()}, {"iterations", 0}};
}

Json raised_under(const Record& record, const Strategy& strategy) {
  const Json hook = hook_in(record.arguments.at("op"));
  Fitting fitting(strategy);
  Json calls = Json::array();
  Recorder recorder(calls, "", [&](const Json& call) {
    if (call == hook) throw std::out_of_range("of the callback");
  });
  std::string raised;
  try {
    fitting.trainer().fit(fitting.data(5), {.epochs = 2, .callbacks = {recorder}});
  } catch (const std::out_of_range&) {
    raised = "KeyError";
  }
  calls.erase(0);
  return {{"raised", raised}, {"calls", calls}, {"weights", fitting.weights()}};
}

Json raised(const Record& record) { return raised_under(record, strategy_named(strategy_of(record))); }
Json raised_by_one(const Record& record) { return raised_under(record, get_strategy()); }

Json called_under(const Strategy& strategy) {
  Json calls = Json::array();
  const auto names = [&calls](const char* hook, const auto&... rest) { calls.push_back({hook, rest...}); };
  FunctionCallback functions(
      {.on_train_begin = [&](const Logs&) { names("tb", Json::object()); },
       .on_train_end = [&](const Logs& logs) { names("te", names_in(logs)); },
       .on_epoch_begin = [&](int epoch, const Logs&) { names("eb", epoch, Json::object()); },
       .on_epoch_end = [&](int epoch, Logs& logs) { names("ee", epoch, names_in(logs)); },
       .on_train_batch_begin = [&](std::int64_t batch, const Logs&) { names("bb", batch, Json::object()); },
       .on_train_batch_end = [&](std::int64_t batch,
                                 const Logs& logs) { names("be", batch, names_in(logs)); },
       .needs_batch_logs = true});
  Fitting fitting(strategy);
  fitting.trainer().fit(fitting.data(5), {.callbacks = {functions}});
  return calls;
}

Json called(const Record& record) { return called_under(strategy_named(strategy_of(record))); }
Json called_by_one(const Record& /*record*/) { return called_under(get_strategy()); }

Json running_logs(const Record& /*record*/) {
  Json seen = Json::array();
  FunctionCallback functions(
      {.on_train_batch_end =
           [&](std::int64_t batch, const Logs& logs) {
             seen.push_back({batch, show(*logs.find("loss")), show(*logs.find("mae"))});
           },
       .needs_batch_logs = true});
  Fitting fitting(get_strategy());
  fitting.trainer().fit(fitting.data(4), {.callbacks = {functions}});
  return seen;
}

Json scheduled_under(const Strategy& strategy) {
  LearningRateScheduler halve([](int /*epoch*/, double rate) { return rate / 2; });
  Fitting fitting(strategy);
  const History history = fitting.trainer().fit(fitting.data(5), {.epochs = 4, .callbacks = {halve}});
  return {show_history(history), show(fitting.optimizer().learning_rate())};
}

Json scheduled(const Record& record) { return scheduled_under(strategy_named(strategy_of(record))); }
Json scheduled_by_one(const Record& /*record*/) { return scheduled_under(get_strategy()); }

Json terminated(const Record& /*record*/) {
  Fitting fitting(get_strategy());
  const auto examples = examples_of(Json::object(), 10);
  examples.first.span<float>()[10] = std::numeric_limits<float>::quiet_NaN();
  Json calls = Json::array();
  TerminateOnNaN terminate;
  Recorder recorder(calls, "", [](const Json& /*call*/) {});
  const History history = fitting.trainer().fit(Dataset<Examples>::from_tensor_slices(examples).batch(2),
                                                {.epochs = 3, .callbacks = {terminate, recorder}});
  std::erase_if(calls.get_ref<Json::array_t&>(), [](const Json& call) {
    return call[0] == "set_params" || call[0] == "on_train_begin" || call[0] == "on_train_batch_begin";
  });
  return {{"calls", calls}, {"epochs", epochs_of(history)}, {"history", show_history(history)}};
}

Json swapped(const Record& /*record*/) {
  Fitting fitting(get_strategy(), {.learning_rate = 0.1}, {.average = AverageOptions{.momentum = 0.5}});
  SwapAverages swap;
  const History history = fitting.trainer().fit(
      fitting.data(5), {.epochs = 2, .validation_data = fitting.data(10), .callbacks = {swap}});
  return {show_history(history), fitting.weights()};
}

Json stopped_early_under(const Strategy& strategy) {
  EarlyStopping early({.monitor = "loss", .min_delta = 0.05, .patience = 1, .restore_best_weights = true});
  Fitting fitting(strategy, {.learning_rate = 0.5});
  const History history = fitting.trainer().fit(fitting.data(5), {.epochs = 20, .callbacks = {early}});
  return {{"history", show_history(history)},
          {"epochs", epochs_of(history)},
          {"stopped_epoch", early.stopped_epoch().value_or(0)},
          {"best_epoch", early.best_epoch()},
          {"weights", fitting.weights()}};
}

Json stopped_early(const Record& record) { return stopped_early_under(strategy_named(strategy_of(record))); }
Json stopped_early_by_one(const Record& /*record*/) { return stopped_early_under(get_strategy()); }

/// What a callback writes into the logs of an epoch is what later ones and the history have.
Json modified(const Record& record) {
  Json seen = Json::array();
  FunctionCallback a({.on_epoch_end = [](int epoch, Logs& logs) {
    logs.set("extra", 10 * epoch);
    logs.set("loss", -1);
  }});
  FunctionCallback b({.on_epoch_end = [&](int /*epoch*/, Logs& logs) {
    seen.push_back({show(*logs.find("extra")), show(*logs.find("loss"))});
  }});
  Fitting fitting(strategy_named(strategy_of(record)));
  const History history = fitting.trainer().fit(fitting.data(5), {.epochs = 2, .callbacks = {a, b}});
  return {seen, history.of("extra"), history.of("loss")};
}

Json as_modified(const Record& /*record*/) { return {{{0, -1}, {10, -1}}, {0, 10}, {-1, -1}}; }

}  // namespace

std::vector<Family> callback_families() {
  return {
      {{"w2/callback/*/stop_training_*"},
       stopped,
       {{"*/stop_training_on_epoch_begin", kStop, stopped_at_once},
        {"*/stop_training_on_train_begin", kStop, stopped_at_once}}},
      {{"w2/callback/*/raise_*"}, raised, {{"w2/callback/mirrored2/*", kExamples, raised_by_one}}},
      {{"w2/callback/*/lambda_callback"}, called, {{"w2/callback/mirrored2/*", kExamples, called_by_one}}},
      {{"w2/callback/*/running_logs"}, running_logs},
      {{"w2/callback/*/lr_scheduler"}, scheduled, {{"w2/callback/mirrored2/*", kExamples, scheduled_by_one}}},
      {{"w2/callback/*/terminate_on_nan"}, terminated},
      {{"w2/callback/*/swap_ema"}, swapped},
      {{"w2/callback/*/fit_early_stopping"},
       stopped_early,
       {{"w2/callback/mirrored2/*", kExamples, stopped_early_by_one}}},
      {{"w2/callback/*/modify_logs"}, modified, {{"*/modify_logs", kExamples, as_modified}}}};
}

namespace {

// Recorded lines of the order in which hooks of callbacks are called.

constexpr std::string_view kPredictions = "predictions are returned, not logged";

Json ordered_under(const std::string& name, const Strategy& strategy) {
  Json calls = Json::array();
  Recorder recorder(calls);
  Fitting fitting(strategy);
  Trainer<Examples>& trainer = fitting.trainer();
  if (name == "order_fit") trainer.fit(fitting.data(4), {.epochs = 2, .callbacks = {recorder}});
  if (name == "order_fit_val")
    trainer.fit(fitting.data(5),
                {.epochs = 2, .validation_data = fitting.data(2, 4), .callbacks = {recorder}});
  if (name == "order_predict") static_cast<void>(trainer.predict(fitting.data(4), {.callbacks = {recorder}}));
  if (name == "order_fit_steps")
    trainer.fit(fitting.data(2), {.epochs = 2, .steps_per_epoch = 2, .callbacks = {recorder}});
  if (name == "order_val_freq")
    trainer.fit(
        fitting.data(10),
        {.epochs = 3, .validation_data = fitting.data(10), .validation_freq = 2, .callbacks = {recorder}});
  if (name == "order_epochs0") trainer.fit(fitting.data(10), {.epochs = 0, .callbacks = {recorder}});
  return {{"calls", calls}};
}

Json ordered(const Record& record) {
  return ordered_under(case_of(record), strategy_named(strategy_of(record)));
}
Json ordered_by_one(const Record& record) { return ordered_under(case_of(record), get_strategy()); }

/// The line without what batches of predictions log.
Json without_outputs(const Record& record) {
  Json outcome = record.outcome;
  for (Json& call : outcome.at("calls"))
    if (call[0] == "on_predict_batch_end") call[2] = Json::array();
  return outcome;
}

Json ordered_both(const Record& /*record*/) {
  Json calls = Json::array();
  Recorder a(calls, "A");
  Recorder b(calls, "B");
  Fitting fitting(get_strategy());
  fitting.trainer().fit(fitting.data(10), {.callbacks = {a, b}});
  return calls;
}

}  // namespace

std::vector<Family> callback_order_families() {
  return {{{"w2/callback/*/order_two_callbacks"}, ordered_both},
          {{"w2/callback/*/order_*"},
           ordered,
           {{"*/order_predict", kPredictions, without_outputs},
            {"w2/callback/mirrored2/order_fit_val", kExamples, ordered_by_one}}}};
}

}  // namespace cohort::conformance
