#include <cohort/checkpoint/checkpoint_manager.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include "background_save.h"
#include "folder.h"
#include "memory_snapshots.h"
#include "workers.h"

namespace cohort {
namespace {

/// Removes the oldest but so many; `newest` is none of them. What fails is tried again after the next save.
void remove_oldest(const std::string& folder, int max_to_keep, std::int64_t newest) try {
  std::vector<FoundCheckpoint> found = list_checkpoints(folder);
  std::erase_if(found, [&](const FoundCheckpoint& each) { return each.step == newest; });
  const auto others = static_cast<std::size_t>(max_to_keep - 1);
  for (std::size_t i = 0; i + others < found.size(); ++i)
    checkpoint::remove_checkpoint(folder, found[i].step);
} catch (const Error& error) {
  logging::warning("old checkpoints stay: {}", error.what());
}

}  // namespace

CheckpointManager::CheckpointManager(Checkpoint& checkpoint, std::string folder,
                                     const CheckpointManagerOptions& options)
    : checkpoint_(checkpoint), folder_(std::move(folder)), options_(options) {
  if (options.max_to_keep < 0)
    throw InvalidArgument("max_to_keep is {}: keep all with 0", options.max_to_keep);
  if (options.memory_every < 0)
    throw InvalidArgument("memory_every is {}: take no snapshots with 0", options.memory_every);
  const checkpoint::Workers workers(checkpoint_.strategy_.extended(), "opens the folder", folder_,
                                    checkpoint_.options_.timeout_seconds);
  workers.first_does([&] { lock_ = std::make_unique<checkpoint::WriterLock>(folder_); });
  if (options.memory_every == 0) return;
  const std::string place = config().snapshot_folder();
  workers.agree([&] { return fmt::format("{} every {} steps", place, options.memory_every); },
                "COHORT_SNAPSHOT_FOLDER and memory_every");
  if (place.empty())
    logging::info("no snapshots are taken in memory: start the job with cohort-run --restarts");
  else
    memory_ = std::make_unique<checkpoint::MemorySnapshots>(workers, place, checkpoint::this_host(), folder_);
}

CheckpointManager::~CheckpointManager() { checkpoint_.background_.reset(); }

std::string CheckpointManager::save(std::int64_t step) {
  std::string path = checkpoint_.save(folder_, step, lock_.get());
  remove_old(step, options_.max_to_keep);
  return path;
}

std::string CheckpointManager::save_async(std::int64_t step) {
  std::string path = checkpoint_.save_async(folder_, step, lock_.get());
  remove_old(step, options_.max_to_keep + 1);
  return path;
}

void CheckpointManager::remove_old(std::int64_t newest, int max_to_keep) {
  if (options_.max_to_keep == 0) return;
  const checkpoint::Workers workers(checkpoint_.strategy_.extended(), "removes old checkpoints in", folder_,
                                    checkpoint_.options_.timeout_seconds);
  workers.first_does([&] { remove_oldest(folder_, max_to_keep, newest); });
}

bool CheckpointManager::snapshot_if_due(std::int64_t step) {
  if (memory_ == nullptr || step % options_.memory_every != 0) return false;
  checkpoint_.strategy_.extended().require_cross_replica("snapshot_if_due");
  const checkpoint::Workers workers(checkpoint_.strategy_.extended(), "takes a snapshot for", folder_,
                                    checkpoint_.options_.timeout_seconds);
  memory_->save(workers, checkpoint_.values_, step);
  return true;
}

LatestCheckpoint CheckpointManager::restore_latest() {
  checkpoint_.wait();
  const checkpoint::Workers workers(checkpoint_.strategy_.extended(), "looks for checkpoints in", folder_,
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
  logging::info("step {} is restored from '{}'", *latest.step, path);
  return latest;
}

}  // namespace cohort
