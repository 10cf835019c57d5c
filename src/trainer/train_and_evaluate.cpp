#include <cohort/trainer/train_and_evaluate.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/cluster/cluster_roles.h>

#include "base/files.h"
#include "base/system_calls.h"
#include "training_checkpoints.h"

namespace cohort {

TrainingTask training_task(const ClusterSpec& spec, std::string_view task_type) {
  if (task_type == "evaluator") return TrainingTask::kEvaluate;  // in the cluster's description or not
  static_cast<void>(worker_count(spec, task_type));              // refuses what cannot train
  return spec.has_job("evaluator") ? TrainingTask::kTrain : TrainingTask::kTrainAndEvaluate;
}

namespace detail {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Between two looks at the folder.
constexpr std::chrono::milliseconds kPoll{100};

void require_usable(const TrainAndEvaluatePlan& plan) {
  if (plan.options.folder.empty()) throw InvalidArgument("train_and_evaluate: options.folder is empty");
  if (plan.max_steps < 1)
    throw InvalidArgument("train_and_evaluate: max_steps is {}; it must be at least 1", plan.max_steps);
  if (plan.options.save_every_steps < 1)
    throw InvalidArgument("train_and_evaluate: save_every_steps is {}; it must be at least 1",
                          plan.options.save_every_steps);
  if (!(plan.start_delay_seconds >= 0) || !(plan.throttle_seconds >= 0) ||
      !(plan.options.timeout_seconds >= 0))
    throw InvalidArgument(
        "train_and_evaluate: start_delay_seconds {}, throttle_seconds {} and timeout_seconds {} must not be "
        "negative",
        plan.start_delay_seconds, plan.throttle_seconds, plan.options.timeout_seconds);
}

/// Whether it is time to evaluate by the first worker's clock, on all workers alike.
bool is_time(const Strategy& strategy, const std::optional<Clock::time_point>& latest, double throttle) {
  const Tensor verdict = Tensor::scalar(std::int64_t{!latest || Clock::now() - *latest >= Seconds(throttle)});
  if (strategy.extended().workers() > 1) strategy.extended().workers_communicator().broadcast(verdict, 0);
  return verdict.item<std::int64_t>() != 0;
}

/// What the exporters of train_and_evaluate save.
class Exports {
 public:
  /// @throws InvalidArgument for exporters without a name, or of one name; as CheckpointManager.
  Exports(const Training& training, const std::string& folder, const std::vector<Exporter>& exporters);

  /// After an evaluation of the parameters that the training has now. Collective.
  void evaluated(const Evaluation& evaluation);
  /// After the last one.
  void finish(const Evaluation& evaluation);

 private:
  struct Export {
    Exporter exporter;
    Monitor monitor;
    std::unique_ptr<SavedParameters> saved;
    std::optional<double> best = {};
  };

  /// Whether it saves, which it remembers of the best.
  [[nodiscard]] bool wants(Export& each, const Evaluation& evaluation) const;

  const Training& training_;
  std::vector<Export> exports_;
};

Exports::Exports(const Training& training, const std::string& folder, const std::vector<Exporter>& exporters)
    : training_(training) {
  for (const Exporter& exporter : exporters) {
    const bool is_taken = std::ranges::count(exporters, exporter.name, &Exporter::name) > 1;
    if (exporter.name.empty() || is_taken)
      throw InvalidArgument("train_and_evaluate: the name '{}' of an exporter is {}", exporter.name,
                            is_taken ? "that of another one, too" : "empty");
    exports_.push_back({exporter, Monitor(exporter.monitor, exporter.mode),
                        std::make_unique<SavedParameters>(
                            training, folder + "/export/" + exporter.name,
                            CheckpointManagerOptions{.max_to_keep = exporter.exports_to_keep})});
    if (exporter.when == ExportWhen::kBest) exports_.back().monitor.begin(training, "an exporter");
  }
}

void Exports::evaluated(const Evaluation& evaluation) {
  for (Export& each : exports_)
    if (wants(each, evaluation)) each.saved->save(evaluation.step, evaluation.logs);
}

void Exports::finish(const Evaluation& evaluation) {
  for (const Export& each : exports_)
    if (each.exporter.when == ExportWhen::kFinal) each.saved->save(evaluation.step, evaluation.logs);
}

bool Exports::wants(Export& each, const Evaluation& evaluation) const {
  if (each.exporter.when == ExportWhen::kFinal) return false;
  if (each.exporter.when == ExportWhen::kLatest) return true;
  const std::optional<double> value = each.monitor.read(evaluation.logs, training_);
  if (!value || std::isnan(*value) || (each.best && !each.monitor.is_better(*value, *each.best)))
    return false;
  each.best = value;
  return true;
}

// A file in the folder of checkpoints says that the training has ended, though it has not had all its steps;
// by it an evaluator knows.

std::string file_in(const std::string& folder) { return folder + "/training-ended"; }

/// Says that a training to `max_steps` has ended after `step` steps. @throws Unavailable naming the file.
void mark_training_end(const std::string& folder, std::int64_t step, std::int64_t max_steps) {
  const std::string file = file_in(folder);
  try {
    NewFile mark(file);
    write_fully(mark.descriptor(), fmt::format("{} of {}\n", step, max_steps));
    mark.publish();
  } catch (const Unavailable& error) {
    throw Unavailable("train_and_evaluate: '{}' cannot be written: {}", file, error.what());
  }
}

/// Whether a training to `max_steps` has ended.
bool has_training_ended(const std::string& folder, std::int64_t max_steps) {
  std::ifstream stream(file_in(folder));
  std::int64_t step = 0;
  std::string of;
  std::int64_t steps = 0;
  if (!(stream >> step >> of >> steps) || steps != max_steps) return false;
  // Its last step is saved before the mark is made, so a mark without it is one of a training that was
  // removed.
  const std::vector<FoundCheckpoint> found = list_checkpoints(folder);
  return !found.empty() && found.back().step >= step;
}

/// Evaluates what the training has now, exports it, and tells of it.
class Evaluations {
 public:
  Evaluations(const TrainAndEvaluateProgram& program, const TrainAndEvaluatePlan& plan)
      : program_(program), exports_(program.training, plan.options.folder, plan.exporters) {}

  void evaluate(std::int64_t step) {
    all_.push_back({step, program_.evaluate()});
    if (program_.training.reports()) report(all_.back());
    exports_.evaluated(all_.back());
  }

  /// Whether the last one was after this step.
  [[nodiscard]] bool has(std::int64_t step) const { return !all_.empty() && all_.back().step == step; }

  /// All of them, after the last one.
  std::vector<Evaluation> finish() {
    if (!all_.empty()) exports_.finish(all_.back());
    return std::move(all_);
  }

 private:
  static void report(const Evaluation& evaluation) {
    std::string text;
    for (const auto& [name, value] : evaluation.logs) text += fmt::format(", {} {:.6g}", name, value);
    logging::info("train_and_evaluate: after step {}{}", evaluation.step, text);
  }

  const TrainAndEvaluateProgram& program_;
  Exports exports_;
  std::vector<Evaluation> all_;
};

std::int64_t next_stop(const TrainAndEvaluatePlan& plan, std::int64_t step) {
  if (plan.options.task == TrainingTask::kTrain) return plan.max_steps;
  const std::int64_t every = plan.options.save_every_steps;
  return std::min((step / every + 1) * every, plan.max_steps);
}

/// Trains from checkpoint to checkpoint, and evaluates in between where that is this task's part.
std::vector<Evaluation> train(const TrainAndEvaluateProgram& program, const TrainAndEvaluatePlan& plan) {
  const Training& training = program.training;
  program.fit(0);  // restores the newest checkpoint, or saves the first one
  if (training.step() >= plan.max_steps || training.stopped()) return {};
  std::optional<Evaluations> evaluations;
  if (plan.options.task == TrainingTask::kTrainAndEvaluate) evaluations.emplace(program, plan);
  std::optional<Clock::time_point> latest;
  for (bool has_ended = false; !has_ended;) {
    const std::int64_t stop = next_stop(plan, training.step());
    program.fit(stop);
    has_ended = training.step() < stop || stop == plan.max_steps || training.stopped();
    if (!evaluations || (!has_ended && !is_time(training.strategy(), latest, plan.throttle_seconds)))
      continue;
    // The data may end where the last evaluation was.
    if (evaluations->has(training.step())) continue;
    latest = Clock::now();
    evaluations->evaluate(training.step());
  }
  if (training.strategy().extended().should_checkpoint())
    mark_training_end(plan.options.folder, training.step(), plan.max_steps);
  return evaluations ? evaluations->finish() : std::vector<Evaluation>();
}

/// Follows the checkpoints of a training.
class Evaluator {
 public:
  Evaluator(const TrainAndEvaluateProgram& program, const TrainAndEvaluatePlan& plan)
      : plan_(plan), evaluations_(program, plan), checkpoint_(program.training.strategy()) {
    if (program.training.strategy().extended().workers() > 1)
      throw InvalidArgument("train_and_evaluate: an evaluator is one task; its strategy has {} workers",
                            program.training.strategy().extended().workers());
    for (const Variable& parameter : program.training.parameters())
      checkpoint_.add(parameter.name(), parameter);
  }

  std::vector<Evaluation> run() {
    wait_or_end(plan_.start_delay_seconds);
    while (const auto found = next()) {
      const Clock::time_point begin = Clock::now();
      if (!restore(*found)) continue;
      evaluations_.evaluate(found->step);
      if (found->step >= plan_.max_steps) break;
      wait_or_end(plan_.throttle_seconds - Seconds(Clock::now() - begin).count());
    }
    return evaluations_.finish();
  }

 private:
  [[nodiscard]] bool has_ended() const { return has_training_ended(plan_.options.folder, plan_.max_steps); }

  /// For so long, or until the training has ended.
  void wait_or_end(double seconds) const {
    const Clock::time_point end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
    while (Clock::now() < end && !has_ended()) std::this_thread::sleep_for(kPoll);
  }

  /// The newest checkpoint that was not evaluated yet; nothing where the training has ended without one.
  [[nodiscard]] std::optional<FoundCheckpoint> next() const {
    const Deadline deadline = Deadline::after(Seconds(plan_.options.timeout_seconds));
    while (true) {
      const bool is_end = has_ended();  // asked first: no checkpoint appears after it
      const std::vector<FoundCheckpoint> found = list_checkpoints(plan_.options.folder);
      if (!found.empty() && found.back().step > seen_) return found.back();
      if (is_end) return std::nullopt;
      if (deadline.expired()) fail();
      std::this_thread::sleep_for(kPoll);
    }
  }

  [[noreturn]] void fail() const {
    throw DeadlineExceeded(
        "train_and_evaluate: for {} s the evaluator has seen no checkpoint in '{}' after step {}, and the "
        "training has not ended: look at the log of the chief, which saves there; if its steps take so long, "
        "set a larger timeout_seconds or a smaller save_every_steps",
        plan_.options.timeout_seconds, plan_.options.folder, seen_ < 0 ? "none" : std::to_string(seen_));
  }

  /// False for one that has been removed since, or is damaged; a later one is taken then.
  [[nodiscard]] bool restore(const FoundCheckpoint& found) {
    seen_ = found.step;
    try {
      checkpoint_.restore(found.path).assert_existing_restored();
      return true;
    } catch (const Unavailable& error) {
      logging::warning("train_and_evaluate: the checkpoint of step {} is left out: {}", found.step,
                       error.what());
    } catch (const DataLoss& error) {
      logging::warning("train_and_evaluate: the checkpoint of step {} is left out: {}", found.step,
                       error.what());
    }
    return false;
  }

  const TrainAndEvaluatePlan& plan_;
  Evaluations evaluations_;
  Checkpoint checkpoint_;
  std::int64_t seen_ = -1;
};

}  // namespace

std::vector<Evaluation> train_and_evaluate(const TrainAndEvaluateProgram& program,
                                           const TrainAndEvaluatePlan& plan) {
  require_usable(plan);
  const auto scope = program.training.strategy().scope();
  if (plan.options.task == TrainingTask::kEvaluate) return Evaluator(program, plan).run();
  return train(program, plan);
}

}  // namespace detail
}  // namespace cohort
