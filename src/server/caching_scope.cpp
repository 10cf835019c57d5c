#include <cohort/server/caching_scope.h>

#include <cohort/base/error.h>

#include "value/read_cache.h"
#include "value/thread_scopes.h"

namespace cohort {

CachingScope::CachingScope() : cache_(std::make_unique<ReadCache>()) {
  if (thread_scopes().cache != nullptr) {
    throw WrongContext(
        "a CachingScope within another one: they do not nest; end the first, and open another to read values "
        "anew");
  }
  thread_scopes().cache = cache_.get();
}

CachingScope::~CachingScope() { thread_scopes().cache = nullptr; }

}  // namespace cohort
