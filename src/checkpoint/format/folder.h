// The folders of checkpoints: FOLDER/step-7 holds that of step 7, complete, or is not there. It is written
// as step-7.unfinished, which readers do not look at, and which the next writer removes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/checkpoint/checkpoint_folder.h>

#include "manifest.h"

namespace cohort::checkpoint {

/// Keeps other jobs from writing to the same folder, as long as it lives, also when the process is killed.
/// Where the file system knows no locks, they are not noticed.
class WriterLock {
 public:
  /// Makes the folder, if it is not there, and removes what killed writers have left in it. @throws
  /// Unavailable when it cannot be made or written to, and when another writer has it, naming its host and
  /// process.
  explicit WriterLock(const std::string& folder);
  ~WriterLock();
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  int descriptor_;
};

/// A checkpoint that is being written.
class UnfinishedFolder {
 public:
  /// Removes what an earlier writer has left, and makes an empty folder.
  /// @throws Unavailable when it cannot be made; InvalidArgument when the step has a checkpoint already.
  UnfinishedFolder(const std::string& folder, std::int64_t step);
  /// Removes it unless it was published.
  ~UnfinishedFolder();
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  /// Adds the index and the manifest, and gives the folder its name. The files of `manifest` are there.
  /// @throws Unavailable; then there is no checkpoint, unless the error says so.
  void publish(Manifest manifest);

 private:
  /// What was not synced may vanish later: it had better not be there. @throws Unavailable, if it stays.
  void take_back(const std::string& cause) const;

  std::string folder_;
  std::string path_;
  std::string unfinished_;  ///< empty once it is published
};

/// `FOLDER/step-7`, and where it is written.
[[nodiscard]] std::string checkpoint_path(const std::string& folder, std::int64_t step);
[[nodiscard]] std::string unfinished_path(const std::string& folder, std::int64_t step);

/// The step in a folder's name, as in `step-7`; nothing for other names, as `step-7.unfinished`.
[[nodiscard]] std::optional<std::int64_t> step_in(std::string_view name);

/// The manifest of the checkpoint at `path`.
/// @throws as parse_manifest; DataLoss when it is that of another step than its folder's; Unavailable when it
/// cannot be read.
[[nodiscard]] Manifest read_manifest(const std::string& path);

/// Whether there is nothing at `path`: who reads a checkpoint without being its writer may see it removed.
[[nodiscard]] bool is_gone(const std::string& path);

/// Removes a checkpoint, which is whole for readers until then. @throws Unavailable.
void remove_checkpoint(const std::string& folder, std::int64_t step);

/// As verify_checkpoint; but a checkpoint that cannot be read now, is of a newer version, or is removed while
/// it is read, may be sound.
/// @throws Unavailable, Unimplemented.
[[nodiscard]] std::vector<std::string> find_damage(const std::string& path);

/// Gives a damaged checkpoint the name `FOLDER/step-7.damaged`, in place of an earlier one, so that it is no
/// checkpoint any more. @throws Unavailable.
void set_aside(const std::string& folder, std::int64_t step);

}  // namespace cohort::checkpoint
