// Recorded lines of summary writers, and of Keras' callback for TensorBoard.
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <cohort/summary/summary_writer.h>
#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/loss_metrics.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callbacks/tensor_board_logger.h>
#include <cohort/trainer/trainer.h>

#include "../scenarios/checkpoints.h"
#include "event_file.h"
#include "families.h"
#include "recorded_fits.h"
#include "temporary_folder.h"

namespace cohort::conformance {
namespace {

using testing::TemporaryFolder;

constexpr std::string_view kEveryEpoch = "logs have every epoch";

/// Who wrote a file is not compared.
Json events_in(const std::string& folder) {
  Json events = testing::events_of(testing::files_of(folder).at(0));
  events[0]["source_metadata"] = "tensorflow.core.util.events_writer";
  return events;
}

/// Names as they are recorded; other names as they are.
Json names_in(const std::string& folder, const Json& recorded) {
  static const std::regex kUsual(R"(events\.out\.tfevents\.\d{10}\.[^/]+\.\d+\.\d+(\.\w+))");
  Json names = Json::array();
  for (const std::string& file : testing::files_of(folder)) {
    const std::string name = std::filesystem::path(file).filename().string();
    const auto& expected = recorded.at(names.size()).get_ref<const std::string&>();
    std::smatch match;
    const bool is_usual = std::regex_match(name, match, kUsual) && expected.ends_with(match[1].str());
    names.push_back(is_usual ? expected : name);
  }
  return names;
}

/// What a line's program does with its writer, and what that returns.
using Actions = std::map<std::string, std::function<Json(SummaryWriter&)>>;

Json record_where(SummaryWriter& writer, std::function<bool()> condition) {
  writer.record_if(std::move(condition));
  return writer.scalar("a", 1, 1);
}

Json record_every_other(SummaryWriter& writer) {
  int step = 0;
  writer.record_if([&] { return step % 2 == 0; });
  for (; step < 4; ++step) writer.scalar("a", step, step);
  return nullptr;
}

Json follow_variable(SummaryWriter& writer) {
  const Variable step({.name = "step", .initial_value = Tensor::scalar(std::int64_t{5})});
  writer.set_step([&] { return step.read().item<std::int64_t>(); });
  writer.scalar("a", 1);
  step.assign(Tensor::scalar(std::int64_t{6}));
  writer.scalar("a", 2);
  return nullptr;
}

Json record_doubles(SummaryWriter& writer) {
  for (int step = 0; step < 3; ++step) writer.scalar("a", 2 * step, step);
  return nullptr;
}

const Actions& scalars() {
  static const Actions kActions{
      {"scalar", [](SummaryWriter& w) { return w.scalar("a/loss", 0.5, 3); }},
      {"scalar_many",
       [](SummaryWriter& w) {
         return Json{w.scalar("l", 0, 0), w.scalar("l", 1, 1), w.scalar("l", 2, 2)};
       }},
      {"scalar_int", [](SummaryWriter& w) { return w.scalar("i", 7, 0); }},
      {"scalar_f64", [](SummaryWriter& w) { return w.scalar("d", Tensor::scalar(1.25), 1); }},
      {"scalar_desc", [](SummaryWriter& w) { return w.scalar("a", 1, 1, "some *text*"); }},
      {"scalar_rank1", [](SummaryWriter& w) { return w.scalar("a", Tensor::from({1.0F}), 1); }},
      {"scalar_default_step",
       [](SummaryWriter& w) {
         w.set_step(42);
         return w.scalar("a", 1);
       }},
      {"scalar_negstep", [](SummaryWriter& w) { return w.scalar("a", 1, -5); }},
      {"scalar_same_step_twice",
       [](SummaryWriter& w) {
         return Json{w.scalar("a", 1, 1), w.scalar("a", 2, 1)};
       }},
      {"record_if_false", [](SummaryWriter& w) { return record_where(w, [] { return false; }); }},
      {"record_if_true", [](SummaryWriter& w) { return record_where(w, [] { return true; }); }},
      {"record_if_callable", record_every_other},
      {"in_function", record_doubles},
      {"step_variable", follow_variable},
      {"trace_off",
       [](SummaryWriter& w) {
         w.flush();
         return true;
       }},
      {"suffix", [](SummaryWriter& w) { return w.scalar("a", 1, 1); }},
      {"flush_returns", [](SummaryWriter& w) {
         w.flush();
         return nullptr;
       }}};
  return kActions;
}

const Actions& other_values() {
  static const Actions kActions{
      {"write_tensor",
       [](SummaryWriter& w) {
         return w.tensor("t", Tensor::from(std::vector{1, 2, 3, 4}, {2, 2}), 2);
       }},
      {"write_string",
       [](SummaryWriter& w) {
         return w.text("t", std::vector<std::string>{"x", "yz"}, 2);
       }},
      {"write_bool", [](SummaryWriter& w) { return w.tensor("t", Tensor::scalar(true), 2); }},
      {"write_metadata",
       [](SummaryWriter& w) {
         return w.tensor("t", Tensor::scalar(1.0F), 0, {.plugin = "me", .content = "\x01\x02"});
       }},
      {"write_emptytag", [](SummaryWriter& w) { return w.tensor("", Tensor::scalar(1.0F), 0); }},
      {"histogram",
       [](SummaryWriter& w) {
         return w.histogram("h", Tensor::from({1.0F, 2.0F, 2.0F, 3.0F, 10.0F}), 1, 5);
       }},
      {"histogram_empty",
       [](SummaryWriter& w) { return w.histogram("h", Tensor::zeros({0}, DType::kFloat32), 1); }},
      {"text", [](SummaryWriter& w) { return w.text("t", "hello", 1); }}};
  return kActions;
}

Json written(const Record& record) {
  const std::string name = case_of(record);
  const TemporaryFolder folder;
  SummaryWriter writer([&] {
    std::vector<std::unique_ptr<SummarySink>> sinks;
    sinks.push_back(event_file_sink(folder.path().string(),
                                    name == "suffix" ? EventFileOptions{".abc"} : EventFileOptions{}));
    return sinks;
  });
  const Actions& actions = scalars().contains(name) ? scalars() : other_values();
  const Json returned = actions.at(name)(writer);
  writer.close();
  return {{"returned", returned},
          {"events", events_in(folder.path().string())},
          {"names", names_in(folder.path().string(), record.outcome.at("names"))}};
}

/// Texts are values of the text plugin, which lines of bare texts do not name.
Json with_text_plugin(const Record& record) {
  Json outcome = record.outcome;
  outcome["events"][1]["values"][0]["plugin"] = "text";
  return outcome;
}

Json refused_scalar(const Record& /*record*/) {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path().string());
  return scalars().at("scalar_rank1")(writer);
}

Json by_replicas(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path().string());
  strategy.run(
      [&](ReplicaContext& replica) { writer.scalar("from_replica", replica.replica_id_in_sync_group(), 1); });
  writer.close();
  return events_in(folder.path().string());
}

Json without_writer(const Record& /*record*/) { return SummaryWriter().scalar("a", 1, 1); }
Json unwritable(const Record& /*record*/) { return SummaryWriter("/proc/nope").scalar("a", 1, 1); }

Json after_close(const Record& /*record*/) {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path().string());
  writer.close();
  return writer.scalar("a", 1, 1);
}

/// Whether the file has grown after each value, and after all.
Json queued(const Record& /*record*/) {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path().string(), {.max_queue = 100, .flush_seconds = 1e6});
  const auto bytes = [&] {
    return std::filesystem::file_size(testing::files_of(folder.path().string()).at(0));
  };
  const auto before = bytes();
  Json grown = Json::array();
  for (int step = 0; step < 3; ++step) {
    writer.scalar("a", 1, step);
    grown.push_back(bytes() > before);
  }
  writer.flush();
  grown.push_back({"after flush", bytes() > before});
  return grown;
}

Json nested(const Record& /*record*/) {
  const TemporaryFolder folder;
  const auto tags_in = [&](const std::string& run) {
    Json tags = Json::array();
    for (const Json& scalar : testing::scalars_of(folder.path(run))) tags.push_back(scalar[0]);
    return tags;
  };
  SummaryWriter outer(folder.path("A"));
  SummaryWriter inner(folder.path("B"));
  inner.scalar("x", 1, 1);
  outer.scalar("y", 1, 1);
  inner.close();
  outer.close();
  return {{"A", tags_in("A")}, {"B", tags_in("B")}};
}

Json logged_by_fit(const Record& record) {
  const TemporaryFolder folder;
  const RecordedModel model = model_of(record.arguments);
  Sgd optimizer({.learning_rate = 0.1});
  Trainer<Examples> trainer(get_strategy(), model, optimizer,
                            {.metrics = {metrics::mean_of(losses::mean_absolute_error(), "mae")}});
  const auto data = Dataset<Examples>::from_tensor_slices(examples_of(record.arguments, 10)).batch(4);
  const std::string frequency = case_of(record).substr(std::string_view("keras_tensorboard_").size());
  TensorBoardLogger board(folder.path("logs"), {.every_steps = frequency == "epoch"   ? 0
                                                               : frequency == "batch" ? 1
                                                                                      : 2});
  trainer.fit(data, {.epochs = 2, .validation_data = data, .callbacks = {board}});
  return {{"train", testing::scalars_of(folder.path("logs/train"))},
          {"validation", testing::scalars_of(folder.path("logs/validation"))}};
}

/// The recorded one has only the second epoch, whose last step is a multiple of 2.
Json with_first_epoch(const Record& record) {
  Json outcome = record.outcome;
  const Json train{
      {"epoch_loss", 0, 0.703079343}, {"epoch_mae", 0, 0.63284266}, {"epoch_learning_rate", 0, 0.1}};
  const Json validation{{"evaluation_loss_vs_iterations", 3, 0.285599321},
                        {"evaluation_mae_vs_iterations", 3, 0.372668445},
                        {"epoch_loss", 0, 0.285599321},
                        {"epoch_mae", 0, 0.372668445}};
  outcome["train"].insert(outcome["train"].begin() + 2, train.begin(), train.end());
  outcome["validation"].insert(outcome["validation"].begin(), validation.begin(), validation.end());
  return outcome;
}

}  // namespace

std::vector<Family> summary_families() {
  return {{{"w2/summary/*/mirrored_replicas"}, by_replicas, {}},
          {{"w2/summary/none/scalar_rank1"}, refused_scalar, {}},
          {{"w2/summary/none/no_writer", "w2/summary/none/noop_writer"}, without_writer, {}},
          {{"w2/summary/none/unwritable"}, unwritable, {}},
          {{"w2/summary/none/write_after_close"}, after_close, {}},
          {{"w2/summary/none/max_queue100"}, queued, {}},
          {{"w2/summary/none/nested_writers"}, nested, {}},
          {{"w2/summary/none/keras_tensorboard_*"},
           logged_by_fit,
           {{"w2/summary/none/keras_tensorboard_2", kEveryEpoch, with_first_epoch}}},
          {{"w2/summary/none/*"},
           written,
           {{"w2/summary/none/write_string", "a text is shown as text", with_text_plugin}}}};
}

}  // namespace cohort::conformance
