#include <cohort/checkpoint/checkpoint_manager.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/base/timeline_span.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include "base/system_calls.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint_writer.h"
#include "memory_snapshots.h"
#include "workers.h"

namespace cohort {
namespace {

using checkpoint::Workers;

void validate(const CheckpointManagerOptions& options) {
  const auto require = [](bool good, const char* name, auto value, const char* rule) {
    if (!good) throw InvalidArgument("CheckpointManagerOptions: {} is {}: {}", name, value, rule);
  };
  require(options.max_to_keep >= 0, "max_to_keep", options.max_to_keep, "keep all with 0");
  require(options.keep_every_steps >= 0, "keep_every_steps", options.keep_every_steps, "keep none with 0");
  require(options.save_every_steps >= 0, "save_every_steps", options.save_every_steps,
          "do not save by steps with 0");
  require(options.save_every_seconds >= 0, "save_every_seconds", options.save_every_seconds,
          "do not save by time with 0");
  require(options.memory_every >= 0, "memory_every", options.memory_every, "take no snapshots with 0");
}

std::string to_text(const CheckpointManagerOptions& options) {
  return fmt::format(
      "max_to_keep {}\nkeep_every_steps {}\nbest_metric '{}'\nlower_is_better {}\nsave_every_steps {}\n"
      "save_every_seconds {}\nmemory_every {}\n",
      options.max_to_keep, options.keep_every_steps, options.best_metric, options.lower_is_better,
      options.save_every_steps, options.save_every_seconds, options.memory_every);
}

CheckpointMetrics without_infinite(const CheckpointMetrics& metrics) {
  CheckpointMetrics finite = metrics;
  std::erase_if(finite, [](const auto& metric) {
    if (std::isfinite(metric.second)) return false;
    logging::warning("the metric '{}' is {}, and is not stored with the checkpoint", metric.first,
                     metric.second);
    return true;
  });
  return finite;
}

}  // namespace

CheckpointManager::CheckpointManager(Checkpoint& checkpoint, std::string folder,
                                     const CheckpointManagerOptions& options)
    : checkpoint_(checkpoint), folder_(std::move(folder)), options_(options) {
  validate(options);
  const Workers workers(checkpoint_.strategy_.extended(), "opens the folder", folder_,
                        checkpoint_.options_.timeout_seconds);
  workers.agree([&] { return to_text(options); }, "the options of the CheckpointManager");
  workers.first_does([&] { lock_ = std::make_unique<checkpoint::WriterLock>(folder_); });
  if (options.save_every_seconds > 0) {
    clock_ = std::make_unique<checkpoint::StepVote>(
        checkpoint_.strategy_.extended(), fmt::format("asks whether to save a checkpoint in '{}'", folder_));
  }
  if (options.memory_every == 0) return;
  const std::string place = config().snapshot_folder();
  workers.agree([] { return config().snapshot_folder(); }, "COHORT_SNAPSHOT_FOLDER");
  if (place.empty())
    logging::info("no snapshots are taken in memory: start the job with cohort-run --restarts");
  else
    memory_ = std::make_unique<checkpoint::MemorySnapshots>(workers, place, host_name(), folder_);
}

CheckpointManager::~CheckpointManager() { checkpoint_.background_.reset(); }

std::string CheckpointManager::save(std::int64_t step, const CheckpointMetrics& metrics) {
  const CheckpointMetrics stored = without_infinite(metrics);
  std::string path = checkpoint_.save(folder_, step, lock_.get(), stored);
  note_save(step, stored);
  remove_old(step, options_.max_to_keep);
  return path;
}

std::string CheckpointManager::save_async(std::int64_t step, const CheckpointMetrics& metrics) {
  const CheckpointMetrics stored = without_infinite(metrics);
  std::string path = checkpoint_.save_async(folder_, step, lock_.get(), stored);
  note_save(step, stored);
  remove_old(step, options_.max_to_keep + 1);
  return path;
}

void CheckpointManager::settle() noexcept {
  if (clock_ != nullptr) clock_->settle();
}

void CheckpointManager::note_save(std::int64_t step, const CheckpointMetrics& stored) {
  latest_step_ = step;
  latest_save_ = std::chrono::steady_clock::now();
  const auto found = stored.find(options_.best_metric);
  best_metrics_[step] = found == stored.end() ? std::nullopt : std::optional(found->second);
}

bool CheckpointManager::is_due(std::int64_t step) {
  bool due = options_.save_every_steps > 0 && step % options_.save_every_steps == 0;
  if (clock_ != nullptr) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - latest_save_;
    const bool own = lock_ != nullptr && since.count() >= options_.save_every_seconds;
    due = clock_->cast(own ? 1 : 0) != 0 || due;
  }
  return due && step != latest_step_;
}

std::optional<std::int64_t> CheckpointManager::best_of(const std::vector<FoundCheckpoint>& found) {
  std::optional<std::int64_t> best;
  for (const FoundCheckpoint& each : found) {
    if (!best_metrics_.contains(each.step)) {
      const CheckpointMetrics saved = checkpoint::read_manifest(each.path).metrics;
      const auto metric = saved.find(options_.best_metric);
      best_metrics_[each.step] = metric == saved.end() ? std::nullopt : std::optional(metric->second);
    }
    const std::optional<double> own = best_metrics_[each.step];
    if (!own) continue;
    const double lead = best ? *own - *best_metrics_[*best] : 0;
    if (!best || (options_.lower_is_better ? lead < 0 : lead > 0)) best = each.step;
  }
  return best;
}

void CheckpointManager::remove_old(std::int64_t newest, int max_to_keep) {
  if (options_.max_to_keep == 0) return;
  const auto remove = [&] {
    const std::vector<FoundCheckpoint> found = list_checkpoints(folder_);
    std::set<std::int64_t> kept{newest};
    for (auto each = found.rbegin(); each != found.rend() && std::ssize(kept) < max_to_keep; ++each)
      kept.insert(each->step);
    if (const auto best = options_.best_metric.empty() ? std::nullopt : best_of(found)) kept.insert(*best);
    for (const FoundCheckpoint& each : found) {
      const bool stays = options_.keep_every_steps > 0 && each.step % options_.keep_every_steps == 0;
      if (!stays && !kept.contains(each.step)) checkpoint::remove_checkpoint(folder_, each.step);
    }
  };
  const Workers workers(checkpoint_.strategy_.extended(), "removes old checkpoints in", folder_,
                        checkpoint_.options_.timeout_seconds);
  workers.first_does([&] {
    try {
      remove();
    } catch (const Error& error) {
      logging::warning("old checkpoints stay: {}", error.what());  // until the next save
    }
  });
}

std::optional<FoundCheckpoint> CheckpointManager::best() {
  if (options_.best_metric.empty())
    throw WrongContext("the CheckpointManager of '{}' has no best_metric to judge by", folder_);
  const Workers workers(checkpoint_.strategy_.extended(), "looks for the best checkpoint in", folder_,
                        checkpoint_.options_.timeout_seconds);
  const auto find = [&] {
    const auto step = best_of(list_checkpoints(folder_));
    return step ? std::to_string(*step) : std::string();
  };
  const std::string step = workers.together([&] { return workers.is_first() ? find() : std::string(); })[0];
  if (step.empty()) return std::nullopt;
  return FoundCheckpoint{std::stoll(step), checkpoint::checkpoint_path(folder_, std::stoll(step))};
}

bool CheckpointManager::snapshot_if_due(std::int64_t step) {
  if (memory_ == nullptr || step % options_.memory_every != 0) return false;
  checkpoint_.strategy_.extended().require_cross_replica("snapshot_if_due");
  const checkpoint::Workers workers(checkpoint_.strategy_.extended(), "takes a snapshot for", folder_,
                                    checkpoint_.options_.timeout_seconds);
  const TimelineSpan span("take snapshot");
  memory_->save(workers, checkpoint_.values_, step);
  return true;
}

LatestCheckpoint CheckpointManager::restore_latest() {
  const Workers workers(checkpoint_.strategy_.extended(), "looks for checkpoints in", folder_,
                        checkpoint_.options_.timeout_seconds);
  LatestCheckpoint latest;
  const auto snapshot = memory_ != nullptr ? memory_->find_newest(workers) : std::nullopt;
  // The first worker judges for all: each would read the same files.
  const auto judge = [&] {
    std::vector<FoundCheckpoint> found = list_checkpoints(folder_);
    std::ranges::reverse(found);
    for (const FoundCheckpoint& each : found) {
      if (snapshot && each.step <= snapshot->step) break;
      const std::vector<std::string> problems = checkpoint::find_damage(each.path);
      if (problems.empty()) return each.path;
      latest.skipped.push_back({each.path, fmt::format("{}", fmt::join(problems, "; "))});
      checkpoint::set_aside(folder_, each.step);
      logging::warning("checkpoint '{0}' is skipped, and renamed to '{0}.damaged': {1}", each.path,
                       latest.skipped.back().reason);
    }
    return std::string();
  };
  std::string path = workers.together([&] { return workers.is_first() ? judge() : std::string(); })[0];
  latest.was_in_memory = path.empty() && snapshot.has_value();
  if (latest.was_in_memory) path = snapshot->path;
  if (path.empty()) return latest;
  latest.status = checkpoint_.restore(path);
  latest.step = latest.status->step();
  if (!latest.was_in_memory) latest_step_ = latest.step;
  logging::info("step {} is restored from '{}'", *latest.step, path);
  return latest;
}

}  // namespace cohort
