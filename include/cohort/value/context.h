// Which context the calling thread is in. Each thread carries a stack of modes; the
// top one says whether it runs a replica or speaks for all of them, for which strategy,
// and which device is the current one. RAII scopes push and pop; nothing else is
// remembered between calls.
#pragma once

#include <optional>

#include <cohort/device/device.h>

namespace cohort {

class MergePoint;
class ReplicaContext;  // the strategy layer, above this one, defines it
class VariableOwner;

enum class ContextKind {
  kDefault,       ///< no strategy: one replica, on the calling thread
  kCrossReplica,  ///< inside `scope()` or a `merge_call`: speaks for all replicas
  kReplica,       ///< inside the function given to `run`
  kUpdate,        ///< inside the function given to `update`: speaks for one component of each variable
};

struct ContextMode {
  ContextKind kind = ContextKind::kDefault;
  VariableOwner* strategy = nullptr;  ///< null in the default context
  ReplicaContext* replica = nullptr;  ///< the replica that this thread runs, null otherwise
  int local_replica = -1;             ///< the replica that runs or is updated; -1: none
  std::optional<Device> device = {};  ///< the current device, where one was chosen
  MergePoint* merge_point = nullptr;  ///< where the replicas of this `run` meet, null otherwise

  /// Speaks for all replicas; the current device stays.
  [[nodiscard]] static ContextMode cross_replica(VariableOwner* strategy) noexcept;
};

namespace detail {
// Visible so that reading a variable costs no call.
extern constinit thread_local const ContextMode* innermost_mode;
}  // namespace detail

/// The calling thread's mode; the default one when no scope is open.
[[nodiscard]] inline const ContextMode& current_mode() noexcept { return *detail::innermost_mode; }

/// Whether no scope of any kind is open on this thread.
[[nodiscard]] bool is_outside_scopes() noexcept;

inline ContextMode ContextMode::cross_replica(VariableOwner* strategy) noexcept {
  return {ContextKind::kCrossReplica, strategy, nullptr, -1, current_mode().device};
}

/// Makes `mode` the current one until the scope ends. Scopes nest and end in reverse order,
/// on the thread that opened them.
class ContextScope {
 public:
  explicit ContextScope(ContextMode mode) noexcept : mode_(mode), outer_(detail::innermost_mode) {
    detail::innermost_mode = &mode_;
  }
  ~ContextScope() { detail::innermost_mode = outer_; }

  /// Whether no other scope was opened inside of this one.
  [[nodiscard]] bool is_innermost() const noexcept { return detail::innermost_mode == &mode_; }

  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  ContextMode mode_;
  const ContextMode* outer_;
};

}  // namespace cohort
