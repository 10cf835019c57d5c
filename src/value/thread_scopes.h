// What a thread's open scopes say, beside its variable creators, and the values that a scope keeps. Replicas
// begin with what holds on the thread that called `run`.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <cohort/value/detail/variable_state.h>

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

/// Values of variables that lie elsewhere, as they were read first. Any thread may call.
class ReadCache {
 public:
  /// A copy of the variable's value; nothing if it was not read yet.
  [[nodiscard]] std::optional<Tensor> find(const VariableState& variable) const;

  /// Keeps what was read. Returns a copy: of another thread's value where that was there first.
  [[nodiscard]] Tensor keep(const VariableState& variable, const Tensor& value);

 private:
  /// Handles that were sent to this task have states of their own.
  using Key = std::pair<const VariableOwner*, std::uint64_t>;
  [[nodiscard]] static Key key_of(const VariableState& variable) {
    return {variable.owner(), variable.number()};
  }

  mutable std::mutex mutex_;
  std::map<Key, Tensor> values_;
};

}  // namespace cohort
