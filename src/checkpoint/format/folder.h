// The folders of checkpoints: FOLDER/step-7 holds that of step 7, complete, or is not there. It is written
// as step-7.unfinished, which readers do not look at, and which the next writer removes. What is read is
// checked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/device/tensor.h>

#include "file.h"
#include "manifest.h"
#include "safetensors.h"

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

/// Reads the values of a checkpoint, and checks what it reads. One thread at a time. Files stay open.
class PieceReader {
 public:
  /// Of the checkpoint in `folder`.
  explicit PieceReader(std::string folder) : folder_(std::move(folder)) {}

  /// The whole value, in host memory. @throws DataLoss naming the value and the file when it is damaged;
  /// Unavailable when it cannot be read.
  [[nodiscard]] Tensor read(const std::string& name, const ValueEntry& value);

  /// The file of a piece, and its place there.
  using Place = std::pair<const InputFile*, TensorPlace>;

  /// Opens the files of a value: it can be read later, also when they have been removed. The places of its
  /// pieces: a manifest is not believed before memory is allocated. @throws as read().
  std::vector<Place> open(const std::string& name, const ValueEntry& value);
  Place locate(const std::string& name, const ValueEntry& value, const Piece& piece);

  /// Only checks a piece. @throws as read().
  void check(const std::string& name, const ValueEntry& value, const Piece& piece);

 private:
  struct OpenFile {
    explicit OpenFile(std::string path) : file(std::move(path)), header(read_header(file)) {}
    InputFile file;
    SafetensorsHeader header;
  };

  std::string folder_;
  std::map<std::string, std::unique_ptr<OpenFile>> files_;
};

}  // namespace cohort::checkpoint
