// Recorded lines of callbacks that are told the values of epochs: no training goes on around them.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <cohort/trainer/callbacks/early_stopping.h>
#include <cohort/trainer/callbacks/model_checkpoint.h>
#include <cohort/trainer/callbacks/reduce_on_plateau.h>

#include "../../trainer/callbacks/scripted_training.h"
#include "../scenarios/checkpoints.h"
#include "families.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNames = "a checkpoint is named by its step";
constexpr std::string_view kMissing = "a number that is missing is said";
constexpr std::string_view kGuess = "a name that says nothing means less is better";

using testing::ScriptedTraining;

double number_of(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

MonitorMode mode_of(const Json& arguments) {
  const std::string mode = arguments.value("mode", "auto");
  return mode == "max" ? MonitorMode::kMax : mode == "min" ? MonitorMode::kMin : MonitorMode::kAuto;
}

Json stopped_early(const Record& record) {
  const Json& arguments = record.arguments.at("args");
  EarlyStoppingOptions options{.mode = mode_of(arguments),
                               .min_delta = arguments.value("min_delta", 0.0),
                               .patience = arguments.value("patience", 0),
                               .start_from_epoch = arguments.value("start_from_epoch", 0),
                               .restore_best_weights = arguments.value("restore_best_weights", false)};
  if (arguments.contains("baseline")) options.baseline = arguments.at("baseline").get<double>();
  EarlyStopping early(options);
  ScriptedTraining training;
  training.begin(early);
  Json states = Json::array();
  for (const Json& value : record.arguments.at("values")) {
    if (training.stopped()) break;
    training.epoch(early, static_cast<int>(states.size()), "val_loss", number_of(value));
    states.push_back({early.wait(), early.best() ? show(*early.best()) : Json(nullptr), early.best_epoch(),
                      training.stopped()});
  }
  return {{"[wait,best,best_epoch,stop]", states},
          {"stopped_epoch", early.stopped_epoch().value_or(0)},
          {"weight_of_epoch_kept", training.weight()}};
}

/// A number whose name does not tell which values are better.
Json guessed(const Record& record) {
  const bool is_auc = case_of(record) == "early_misc_auto_auc";
  EarlyStopping early({.monitor = is_auc ? "auc" : "val_score", .patience = 1});
  ScriptedTraining training;
  training.begin(early);
  int epochs = 0;
  for (const double value : {0.1, 0.5, 0.4, 0.6})
    if (!training.stopped()) training.epoch(early, epochs++, is_auc ? "auc" : "val_score", value);
  return epochs;
}

Json reduced_on_plateau(const Record& record) {
  if (case_of(record) == "plateau_factor1") return ReduceOnPlateau({.factor = 1}).wait();
  const Json& arguments = record.arguments.at("args");
  ReduceOnPlateau plateau({.mode = mode_of(arguments),
                           .factor = arguments.value("factor", 0.1),
                           .patience = arguments.value("patience", 10),
                           .min_delta = arguments.value("min_delta", 0.0001),
                           .cooldown = arguments.value("cooldown", 0),
                           .min_rate = arguments.value("min_lr", 0.0)});
  ScriptedTraining training;
  training.begin(plateau);
  Json states = Json::array();
  for (const Json& value : record.arguments.at("values")) {
    const Logs logs = training.epoch(plateau, static_cast<int>(states.size()), "val_loss", number_of(value));
    states.push_back({show(training.optimizer()->learning_rate()), plateau.wait(), plateau.cooldown(),
                      show(*logs.find("learning_rate"))});
  }
  return {{"[lr,wait,cooldown_counter,logged_lr]", states}};
}

/// Names of checkpoints as the original's default would have them.
Json files_in(const std::string& folder) {
  Json files = Json::array();
  for (const FoundCheckpoint& found : list_checkpoints(folder))
    files.push_back(fmt::format("m_{:02}.weights.h5", found.step));
  std::sort(files.begin(), files.end());
  return files;
}

Json saved(const Record& record) {
  const Json& arguments = record.arguments.at("args");
  const std::string monitor = arguments.value("monitor", "val_loss");
  const CheckpointFolder folder;
  ModelCheckpoint saver(folder.path(), {.monitor = monitor,
                                        .mode = mode_of(arguments),
                                        .save_best_only = arguments.value("save_best_only", false),
                                        .max_to_keep = 0});
  ScriptedTraining training;
  training.begin(saver);
  Json files = Json::array();
  for (const Json& value : record.arguments.at("values")) {
    training.epoch(saver, static_cast<int>(files.size()), monitor == "nope" ? "val_loss" : monitor,
                   number_of(value));
    files.push_back(files_in(folder.path()));
  }
  saver.on_train_end({});
  return {{"files_after_each_epoch", files}, {"best", saver.best() ? show(*saver.best()) : Json(nullptr)}};
}

Json without_files(const Record& record) {
  const std::vector<Json> none(record.arguments.at("values").size(), Json::array());
  return {{"files_after_each_epoch", none}, {"best", nullptr}};
}

/// The line with files named by steps, all of them where the original writes one again and again.
Json by_steps(const Record& record) {
  Json outcome = record.outcome;
  const Json& all = outcome.at("files_after_each_epoch");
  const bool again = case_of(record) == "modelckpt_scripted_fixed_name";
  const std::vector<std::vector<int>> kept = {{1}, {1}, {1, 3}, {1, 3}, {1, 3}, {1, 3, 6}};
  Json named = Json::array();
  for (std::size_t epoch = 0; epoch < all.size(); ++epoch) {
    Json files = Json::array();
    const std::size_t count = again ? kept[epoch].size() : all[epoch].size();
    for (std::size_t i = 0; i < count; ++i)
      files.push_back(fmt::format("m_{:02}.weights.h5", again ? kept[epoch][i] : static_cast<int>(i) + 1));
    named.push_back(files);
  }
  outcome["files_after_each_epoch"] = named;
  return outcome;
}

}  // namespace

std::vector<Family> scripted_callback_families() {
  return {{{"w2/callback/*/early_misc_auto_*"},
           guessed,
           {{"*/early_misc_auto_auc", kGuess, [](const Record& /*record*/) { return Json(3); }},
            {"*/early_misc_auto_unknown", kGuess, [](const Record& /*record*/) { return Json(2); }}}},
          {{"w2/callback/*/early_*"}, stopped_early},
          {{"w2/callback/*/plateau_*"}, reduced_on_plateau},
          {{"w2/callback/*/modelckpt_scripted_*"},
           saved,
           {{"*/modelckpt_scripted_f*", kNames, by_steps},
            {"*/modelckpt_scripted_best_missing_monitor", kMissing, without_files}}}};
}

}  // namespace cohort::conformance
