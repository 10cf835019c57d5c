#include "tuning_store.h"

namespace cohort {

TuningStore& TuningStore::of_this_process() {
  static auto* const store = new TuningStore;  // communicators may work until after static objects are gone
  return *store;
}

std::optional<TuningTable> TuningStore::find(const std::string& shape) const {
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(shape);
  if (found == tables_.end()) return std::nullopt;
  return found->second;
}

void TuningStore::keep(const std::string& shape, const TuningTable& table) {
  const std::lock_guard lock(mutex_);
  tables_.insert_or_assign(shape, table);
}

}  // namespace cohort
