#include "thread_scopes.h"

#include <cohort/value/context.h>

namespace cohort {
namespace {

constexpr ContextMode kDefaultMode;

}  // namespace

namespace detail {

constinit thread_local const ContextMode* innermost_mode = &kDefaultMode;

}  // namespace detail

bool is_outside_scopes() noexcept { return detail::innermost_mode == &kDefaultMode; }

ThreadScopes& thread_scopes() noexcept {
  thread_local ThreadScopes scopes;
  return scopes;
}

std::optional<Tensor> ReadCache::find(const VariableState& variable) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key_of(variable));
  if (found == values_.end()) return std::nullopt;
  return found->second.clone();
}

Tensor ReadCache::keep(const VariableState& variable, const Tensor& value) {
  const std::lock_guard lock(mutex_);
  return values_.try_emplace(key_of(variable), value).first->second.clone();
}

}  // namespace cohort
