#include "tuning_store.h"

#include <cohort/base/config.h>

#include "tuning_file.h"

namespace cohort {

TuningStore& TuningStore::of_this_process() {
  static auto* const store = new TuningStore;  // communicators may work until after static objects are gone
  return *store;
}

std::optional<TuningTable> TuningStore::find(TuningScope scope, const std::string& shape) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = tables_.find(shape); found != tables_.end()) return found->second;
  const std::string& path = config().tuning_file();
  return path.empty() ? std::nullopt : TuningFile(path).read(scope, shape);
}

void TuningStore::keep(const std::string& shape, const TuningTable& table) {
  const std::lock_guard lock(mutex_);
  tables_.insert_or_assign(shape, table);
}

void TuningStore::save(TuningScope scope, const std::string& shape, const TuningTable& table) {
  const std::lock_guard lock(mutex_);
  const std::string& path = config().tuning_file();
  if (!path.empty()) TuningFile(path).write(scope, shape, table);
}

}  // namespace cohort
