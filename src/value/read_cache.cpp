#include "read_cache.h"

namespace cohort {

std::optional<Tensor> ReadCache::find(const VariableState& variable) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key_of(variable));
  if (found == values_.end()) return std::nullopt;
  return found->second.clone();
}

Tensor ReadCache::keep(const VariableState& variable, Tensor value) {
  const std::lock_guard lock(mutex_);
  return values_.try_emplace(key_of(variable), std::move(value)).first->second.clone();
}

}  // namespace cohort
