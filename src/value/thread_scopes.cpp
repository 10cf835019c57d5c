#include "thread_scopes.h"

namespace cohort {

ThreadScopes& thread_scopes() noexcept {
  thread_local ThreadScopes scopes;
  return scopes;
}

}  // namespace cohort
