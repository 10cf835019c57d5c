#include <cohort/checkpoint/checkpoint_manager.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include "folder.h"
#include "workers.h"

namespace cohort {
namespace {

/// Removes the oldest but so many; `newest` is none of them. What fails is tried again after the next save.
void remove_oldest(const std::string& folder, int max_to_keep, std::int64_t newest) {
  std::vector<FoundCheckpoint> found = list_checkpoints(folder);
  std::erase_if(found, [&](const FoundCheckpoint& each) { return each.step == newest; });
  const auto others = static_cast<std::size_t>(max_to_keep - 1);
  for (std::size_t i = 0; i + others < found.size(); ++i) {
    try {
      checkpoint::remove_checkpoint(folder, found[i].step);
    } catch (const Error& error) {
      logging::warning("an old checkpoint stays: {}", error.what());
    }
  }
}

}  // namespace

CheckpointManager::CheckpointManager(Checkpoint& checkpoint, std::string folder,
                                     const CheckpointManagerOptions& options)
    : checkpoint_(checkpoint), folder_(std::move(folder)), options_(options) {
  if (options.max_to_keep < 0)
    throw InvalidArgument("max_to_keep is {}: keep all with 0", options.max_to_keep);
  const checkpoint::Workers workers(checkpoint_.strategy_.extended(), "opens the folder", folder_,
                                    checkpoint_.options_.timeout_seconds);
  workers.first_does([&] {
    lock_ = std::make_unique<checkpoint::WriterLock>(folder_);
    checkpoint::remove_unfinished(folder_);
  });
}

CheckpointManager::~CheckpointManager() = default;

std::string CheckpointManager::save(std::int64_t step) {
  std::string path = checkpoint_.save(folder_, step, lock_.get());
  latest_step_ = step;
  if (options_.max_to_keep == 0) return path;
  const checkpoint::Workers workers(checkpoint_.strategy_.extended(), "removes old checkpoints in", folder_,
                                    checkpoint_.options_.timeout_seconds);
  workers.first_does([&] { remove_oldest(folder_, options_.max_to_keep, step); });
  return path;
}

LatestCheckpoint CheckpointManager::restore_latest() {
  const checkpoint::Workers workers(checkpoint_.strategy_.extended(), "looks for checkpoints in", folder_,
                                    checkpoint_.options_.timeout_seconds);
  LatestCheckpoint latest;
  // The first worker judges for all: each would read the same files.
  const auto judge = [&] {
    std::vector<FoundCheckpoint> found = list_checkpoints(folder_);
    std::ranges::reverse(found);
    for (const FoundCheckpoint& each : found) {
      const std::vector<std::string> problems = checkpoint::find_damage(each.path);
      if (problems.empty()) return each.path;
      latest.skipped.push_back({each.path, fmt::format("{}", fmt::join(problems, "; "))});
      checkpoint::set_aside(folder_, each.step);
      logging::warning("checkpoint '{0}' is skipped, and renamed to '{0}.damaged': {1}", each.path,
                       latest.skipped.back().reason);
    }
    return std::string();
  };
  const std::string path = workers.together([&] { return workers.is_first() ? judge() : std::string(); })[0];
  if (path.empty()) return latest;
  latest.status = checkpoint_.restore(path);
  latest.step = latest.status->step();
  latest_step_ = latest.step;
  return latest;
}

}  // namespace cohort
