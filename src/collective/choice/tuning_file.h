// COHORT_TUNING_FILE: what probes have found out, by host and by shape of the group, as JSON. Several hosts
// may share the file; the last writer wins, and a host that finds its own part missing probes again. A file
// that cannot be used is a warning, never an error. One that does not begin as a tuning file, or cannot be
// read, is somebody's data that the setting names by mistake: it is left as it is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tuning_table.h"

namespace cohort {

class TuningFile {
 public:
  explicit TuningFile(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// This host's table for groups of this shape; nothing where the file has none that can be used.
  [[nodiscard]] std::optional<TuningTable> read(TuningScope scope, const std::string& shape);

  /// Puts the figures that were probed in place of what the file has for this host and shape. Readers
  /// see the old file or the new one.
  void write(TuningScope scope, const std::string& shape, const TuningTable& table);

 private:
  void leave_alone(const char* why);

  std::filesystem::path path_;
  bool is_left_alone_ = false;  ///< which has been said
};

}  // namespace cohort
