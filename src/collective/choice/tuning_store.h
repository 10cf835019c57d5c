// The results of earlier probes, by the shape of the group: those of this process's
// own communicators, and those in COHORT_TUNING_FILE. Any thread may use it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tuning_file.h"
#include "tuning_table.h"

namespace cohort {

/// The words for a group over several nodes: all of the same shape go by the same figures.
[[nodiscard]] std::string shape_of_network(int nodes, int members);

class TuningStore {
 public:
  [[nodiscard]] static TuningStore& of_this_process();

  /// `shape` says in words what kind of group the table is for, for example `node of 2 processes`.
  [[nodiscard]] std::optional<TuningTable> find(TuningScope scope, const std::string& shape);

  /// For later communicators of this process.
  void keep(const std::string& shape, const TuningTable& table);

  /// Later communicators of this process probe again, unless COHORT_TUNING_FILE knows.
  void forget();

  /// For later runs, too. Called by one member of a group that has probed.
  void save(TuningScope scope, const std::string& shape, const TuningTable& table);

 private:
  /// Null where the setting names none.
  [[nodiscard]] TuningFile* the_file();

  std::mutex mutex_;
  std::map<std::string, TuningTable, std::less<>> tables_;
  std::optional<TuningFile> file_;
};

}  // namespace cohort
