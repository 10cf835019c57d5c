// What a thread's open scopes say, beside its variable creators. Replicas begin with what holds on the thread
// that called `run`.
#pragma once

#include <utility>

namespace cohort {

class ReadCache;

struct ThreadScopes {
  ReadCache* cache = nullptr;  ///< of the CachingScope; null: none is open
  int colocating = 0;          ///< how many scopes of `colocate_vars_with` are open
};

/// Of the calling thread.
[[nodiscard]] ThreadScopes& thread_scopes() noexcept;

/// While it lives, this thread has the scopes of another one, which keeps them open.
class InheritedScopes {
 public:
  explicit InheritedScopes(const ThreadScopes& scopes) noexcept
      : replaced_(std::exchange(thread_scopes(), scopes)) {}
  ~InheritedScopes() { thread_scopes() = replaced_; }
  InheritedScopes(const InheritedScopes&) = delete;
  InheritedScopes& operator=(const InheritedScopes&) = delete;

 private:
  ThreadScopes replaced_;
};

}  // namespace cohort
