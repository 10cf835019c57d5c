// Which context the calling thread is in. Each thread carries a stack of modes; the
// top one says whether it runs a replica or speaks for all of them, and for which
// strategy. RAII scopes push and pop; nothing else is remembered between calls.
#pragma once

namespace cohort {

class ReplicaContext;  // the strategy layer, above this one, defines it
class VariableOwner;

enum class ContextKind {
  kDefault,       ///< no strategy: one replica, on the calling thread
  kCrossReplica,  ///< inside `scope()` or a `merge_call`: speaks for all replicas
  kReplica,       ///< inside the function given to `run`
};

struct ContextMode {
  ContextKind kind = ContextKind::kDefault;
  VariableOwner* strategy = nullptr;  ///< null in the default context
  ReplicaContext* replica = nullptr;  ///< the replica that this thread runs, null otherwise
  int local_replica = -1;             ///< its number among this worker's replicas
};

/// The calling thread's mode; the default one when no scope is open.
[[nodiscard]] const ContextMode& current_mode() noexcept;

/// Makes `mode` the current one until the scope ends. Scopes nest and end in reverse order,
/// on the thread that opened them.
class ContextScope {
 public:
  explicit ContextScope(ContextMode mode) noexcept;
  ~ContextScope();

  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  friend const ContextMode& current_mode() noexcept;
  ContextMode mode_;
  ContextScope* outer_;
};

}  // namespace cohort
