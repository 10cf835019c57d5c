// Recorded lines of checkpoints that are saved while a model is trained.
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <cohort/trainer/callbacks/model_checkpoint.h>

#include "../scenarios/checkpoints.h"
#include "families.h"
#include "fitting.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kResume = "fit goes on where it was";

Json saved(const Record& record) {
  const std::string name = case_of(record);
  const CheckpointFolder folder;
  const std::int64_t every = record.arguments.at("args").value("save_freq", 0);
  ModelCheckpoint saver(folder.path(), {.monitor = "loss", .save_every_steps = every, .max_to_keep = 0});
  Fitting fitting(strategy_named(strategy_of(record)));
  FitOptions<Examples> options{.epochs = 4, .callbacks = {saver}};
  if (name == "modelckpt_fit_val") options.validation_data = fitting.data(10);
  const std::vector<double> losses = fitting.trainer().fit(fitting.data(5), options).of("val_loss");
  Json files = Json::array();
  for (const FoundCheckpoint& found : list_checkpoints(folder.path())) {
    const std::int64_t epoch = (found.step + 1) / 2;
    const auto at = static_cast<std::size_t>(epoch - 1);
    if (every > 0)
      files.push_back(fmt::format("m_{}_{}.weights.h5", epoch, found.step - 2 * (epoch - 1)));
    else if (!losses.empty())
      files.push_back(fmt::format("m_{}_{:.3f}.weights.h5", epoch, losses.at(at)));
    else
      files.push_back(fmt::format("m_{:02}.weights.h5", epoch));
  }
  return {{"files", files}};
}

struct Failure {
  int epoch = 0;
  int batch = 0;
  int save_every = 0;  ///< steps
};

/// `backup_e1_b2_2`: in epoch 1, batch 2; saved every 2 steps.
Failure failure_of(const std::string& name) {
  if (name == "backup_keep") return {.epoch = 1, .batch = 2, .save_every = 5};
  return {.epoch = name.at(8) - '0',
          .batch = name.at(11) - '0',
          .save_every = name.ends_with("_epoch") ? 5 : name.back() - '0'};
}

/// A fit of three epochs of five steps that saves checkpoints, and perhaps fails.
Json fit_with_checkpoints(const Strategy& strategy, const std::string& folder, const Failure& failure,
                          bool fails) {
  Json calls = Json::array();
  Recorder recorder(calls, "", [&](const Json& call) {
    const bool is_there = call[0] == "on_train_batch_end" && call[1] == failure.batch;
    int epoch = -1;
    for (const Json& each : calls)
      if (each[0] == "on_epoch_begin") epoch = each[1];
    if (fails && is_there && epoch == failure.epoch) throw std::runtime_error("of the callback");
  });
  Fitting fitting(strategy);
  Json raised = nullptr;
  try {
    fitting.trainer().fit(
        fitting.data(2),
        {.epochs = 3,
         .callbacks = {recorder},
         .checkpoint = {.folder = folder, .manager = {.save_every_steps = failure.save_every}}});
  } catch (const std::runtime_error&) {
    raised = "RuntimeError";
  }
  Json batches = Json::array();
  for (const Json& call : calls)
    if (call[0] == "on_epoch_begin" || call[0] == "on_train_batch_begin") batches.push_back(call);
  return {{"raised", raised},
          {"batches", batches},
          {"weights", fitting.weights()},
          {"iterations", fitting.optimizer().iterations()}};
}

Json backed_up(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const Failure failure = failure_of(case_of(record));
  const CheckpointFolder folder;
  const Json first = fit_with_checkpoints(strategy, folder.path(), failure, true);
  return {{"runs", {first, fit_with_checkpoints(strategy, folder.path(), failure, false)}}};
}

/// The second run of the line from the checkpoint before the failure on, to the end of an uninterrupted one.
Json exactly(const Record& record) {
  Json outcome = record.outcome;
  const Failure failure = failure_of(case_of(record));
  const int failed =
      5 * failure.epoch + failure.batch;  // the step's number, of which no checkpoint was saved
  Json batches = Json::array();
  const int first = failed / failure.save_every * failure.save_every;
  batches.push_back({"on_epoch_begin", std::max(first - 1, 0) / 5});  // of the checkpoint
  for (int step = first; step < 15; ++step) {
    if (step % 5 == 0 && step > 0) batches.push_back({"on_epoch_begin", step / 5});
    batches.push_back({"on_train_batch_begin", step % 5});
  }
  Json& second = outcome.at("runs").at(1);
  second["batches"] = batches;
  second["weights"] = outcome.at("weights_uninterrupted");
  second["iterations"] = 15;
  for (Json& run : outcome.at("runs")) run.erase("files_after");
  outcome.erase("weights_uninterrupted");
  return outcome;
}

}  // namespace

std::vector<Family> fit_checkpoint_families() {
  return {{{"w2/callback/*/modelckpt_fit_*"}, saved},
          {{"w2/callback/*/backup_*"}, backed_up, {{"*/backup_*", kResume, exactly}}}};
}

}  // namespace cohort::conformance
