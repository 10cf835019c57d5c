// Where the replicas of one `run` meet: all of them pause, and one function runs for all.
// `ReplicaContext::merge_call` is this with types; variables that replicas make or update
// together use it as well. Internal.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <typeindex>

#include <cohort/collective/call_purpose.h>

namespace cohort {

/// One replica's part in a meeting.
struct MergeRequest {
  std::string_view call;           ///< what the replica called, for messages
  std::type_index argument_types;  ///< what `arguments` points to; equal on all replicas
  void* arguments;

  /// Called with the `arguments` of all replicas, in their order; its result goes to all of them.
  std::function<std::shared_ptr<void>(std::span<void* const> arguments_by_replica)> merge;

  const CallPurpose& purpose;  ///< on which all replicas must agree
};

class MergePoint {
 public:
  virtual ~MergePoint() = default;

  /// Waits for the other local replicas. Replica 0's `merge` runs in cross-replica context.
  /// @throws WrongContext when the replicas do not all make the same call.
  virtual std::shared_ptr<void> meet(int local_replica, MergeRequest& request) = 0;

  /// Says that the replica is about to wait for all others in a collective. Replicas that have returned, or
  /// wait here for a merge, will not make it. `purpose` lives until `end_collective`.
  virtual void begin_collective(int local_replica, const CallPurpose& purpose) = 0;
  virtual void end_collective(int local_replica) = 0;
};

}  // namespace cohort
