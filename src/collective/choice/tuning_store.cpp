#include "tuning_store.h"

#include <fmt/format.h>

#include <cohort/base/config.h>

namespace cohort {

std::string shape_of_network(int nodes, int members) {
  return fmt::format("{} nodes, {} members", nodes, members);
}

TuningStore& TuningStore::of_this_process() {
  static auto* const store = new TuningStore;  // communicators may work until after static objects are gone
  return *store;
}

std::optional<TuningTable> TuningStore::find(TuningScope scope, const std::string& shape) {
  const std::lock_guard lock(mutex_);
  if (const auto found = tables_.find(shape); found != tables_.end()) return found->second;
  TuningFile* const file = the_file();
  return file == nullptr ? std::nullopt : file->read(scope, shape);
}

void TuningStore::keep(const std::string& shape, const TuningTable& table) {
  const std::lock_guard lock(mutex_);
  tables_.insert_or_assign(shape, table);
}

void TuningStore::forget() {
  const std::lock_guard lock(mutex_);
  tables_.clear();
}

void TuningStore::save(TuningScope scope, const std::string& shape, const TuningTable& table) {
  const std::lock_guard lock(mutex_);
  if (TuningFile* const file = the_file()) file->write(scope, shape, table);
}

TuningFile* TuningStore::the_file() {
  const std::string& path = config().tuning_file();
  if (path.empty()) return nullptr;
  if (!file_ || file_->path() != path) file_.emplace(path);
  return &*file_;
}

}  // namespace cohort
