// What this process knows of earlier probes, by the shape of the group: what its own
// communicators have found out. Any thread may use it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tuning_table.h"

namespace cohort {

class TuningStore {
 public:
  [[nodiscard]] static TuningStore& of_this_process();

  /// `shape` says in words what kind of group the table is for, for example `2 processes`.
  [[nodiscard]] std::optional<TuningTable> find(const std::string& shape) const;
  void keep(const std::string& shape, const TuningTable& table);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, TuningTable, std::less<>> tables_;
};

}  // namespace cohort
