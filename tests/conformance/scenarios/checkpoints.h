// What the scenarios of checkpoints share.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/strategy/strategy.h>

#include "common.h"

namespace cohort::conformance {

// The rows of "Deliberate differences" that several groups of checkpoints refer to.
inline constexpr std::string_view kCheckpointFolder = "a checkpoint is a folder";

/// A folder for one line's checkpoints, removed with all that is in it.
class CheckpointFolder {
 public:
  CheckpointFolder();
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

  /// Names of the checkpoints, sorted.
  [[nodiscard]] std::vector<std::string> entries() const;

  /// Of one value, as step 1. Returns its path.
  template <class Value>
  [[nodiscard]] std::string save(const Value& value) const {
    Checkpoint checkpoint;
    checkpoint.add("v", value);
    return checkpoint.save(path(), 1);
  }

 private:
  std::filesystem::path path_;
};

/// The value that `CheckpointFolder::save` has saved, and no other.
template <class Value>
void restore(const std::string& path, const Value& value) {
  Checkpoint checkpoint;
  checkpoint.add("v", value);
  checkpoint.restore(path).assert_consumed();
}

/// `mirrored3`, `mirrored x3`, `central2`, `default1` or `default`.
[[nodiscard]] Strategy strategy_named(std::string name);

/// `default` in `w2/checkpoint/default/save_names`.
[[nodiscard]] std::string strategy_of(const Record& record);

/// `save_names` in the same.
[[nodiscard]] std::string case_of(const Record& record);

/// The names and extents of what a checkpoint holds: `[["w", [5, 2]]]`.
[[nodiscard]] Json keys_of(const std::string& path);

/// A row of numbers as element j of row i is 2 i + j + 0.5, in two columns.
[[nodiscard]] Tensor half_rows(std::int64_t rows);

/// OK, or the name of the original's assertion.
[[nodiscard]] Json verdict_of(const std::function<void()>& assertion);

}  // namespace cohort::conformance
