// How the replicas of a `run` merge: the only one where it runs; L of them, on L threads,
// at points where all pause. And how all of them end when one fails.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/base/event_count.h>
#include <cohort/strategy/replica_context.h>
#include <cohort/value/variable_creator_scope.h>

#include "device/device_thread.h"
#include "value/thread_scopes.h"

namespace cohort {

/// The text of any exception.
[[nodiscard]] std::string what_of(const std::exception_ptr& error);

/// The error for the others when `who` (such as `worker 2`), the member and host `where`, fails with `error`.
/// An Aborted error names the original failure already.
[[nodiscard]] Aborted failure_for_others(std::string_view who, ErrorOrigin where,
                                         const std::exception_ptr& error);

/// A merge of the only replica needs no meeting: it runs where the replica runs.
class LoneMergePoint final : public MergePoint {
 public:
  explicit LoneMergePoint(VariableOwner* strategy) : strategy_(strategy) {}

  std::shared_ptr<void> meet(int local_replica, MergeRequest& request) override;
  void begin_collective(int /*local_replica*/, const CallPurpose& /*purpose*/) override {}
  void end_collective(int /*local_replica*/) override {}

 private:
  VariableOwner* strategy_;  // null in the default context, which a merge leaves as it is
  const VariableCreatorScope* creators_ = VariableCreatorScope::innermost();  // of the caller of run
  ThreadScopes scopes_ = thread_scopes();                                     // likewise
};

/// The threads of a strategy's devices, and what a run keeps for each replica. One run at a time.
class ReplicaTeam {
 public:
  /// One thread for each list of cores.
  explicit ReplicaTeam(std::span<const std::vector<int>> cores);

 private:
  friend class ReplicaRun;

  /// While `kRunning`, the replica owns its runner; in any other phase it leaves the runner alone until the
  /// calling thread lets it run again. Once a run is ending, phases mean nothing: the calling thread leaves
  /// all runners alone until their threads have finished.
  enum class Phase { kRunning, kMerging, kDone, kFailed };

  /// Which failure ended a replica: its own, or another's. An Aborted error comes from a collective that
  /// another replica's failure ended; if no other has failed, it is the replica's own.
  enum class Blame { kOwn, kOther, kOtherIfAnyFailed };

  /// A thread, and where the replica is that it runs.
  struct Runner {
    std::unique_ptr<DeviceThread> thread;
    std::atomic<Phase> phase{Phase::kRunning};
    MergeRequest* request = nullptr;
    std::shared_ptr<void> merged;
    int merges = 0;
    std::atomic<int> collectives{0};                   // begun in this run
    std::atomic<const CallPurpose*> purpose{nullptr};  // of the collective that the replica is in
    std::exception_ptr error;
    Blame blame = Blame::kOwn;  // for `error`
  };

  std::vector<Runner> runners_;
  EventCount pauses_;    // of replicas, for the calling thread
  EventCount releases_;  // of replicas that wait in a merge
};

class ReplicaRun final : public MergePoint {
 public:
  ReplicaRun(StrategyExtended& extended, const std::function<void(ReplicaContext&)>& body, ReplicaTeam& team);

  /// Runs `body` on every thread of the team and serves their merges on the calling thread.
  /// @throws the exception of the lowest replica that failed by itself, or of a merge function.
  void execute();

  std::shared_ptr<void> meet(int local_replica, MergeRequest& request) override;
  void begin_collective(int local_replica, const CallPurpose& purpose) override;
  void end_collective(int local_replica) override;

 private:
  using Phase = ReplicaTeam::Phase;
  using Blame = ReplicaTeam::Blame;
  using Runner = ReplicaTeam::Runner;

  [[nodiscard]] Runner& runner(int local_replica) {
    return runners_[static_cast<std::size_t>(local_replica)];
  }

  void run_replica(int local_replica);
  void record_failure(int local_replica, const std::exception_ptr& error, Blame blame);
  void pause(Runner& runner, Phase phase);
  void serve_merges();
  [[nodiscard]] bool all_paused() const;
  void merge_all();
  [[nodiscard]] std::vector<void*> arguments_by_replica() const;
  [[noreturn]] void throw_unequal_meeting(const Runner& odd) const;
  [[nodiscard]] std::exception_ptr unequal_merges() const;
  /// A replica that will not make the collective that another one has begun; null when there is none.
  [[nodiscard]] Runner* deserter();
  [[nodiscard]] std::exception_ptr unequal_collectives(Runner& deserter);
  [[nodiscard]] std::string name_of(const Runner& runner) const;
  [[nodiscard]] static std::string action_of(Runner& runner);
  [[nodiscard]] std::exception_ptr first_error() const;
  void clear_runners();

  StrategyExtended& extended_;
  const std::function<void(ReplicaContext&)>& body_;
  const VariableCreatorScope* creators_ = VariableCreatorScope::innermost();  // of the calling thread
  ThreadScopes scopes_ = thread_scopes();                                     // likewise
  std::vector<Runner>& runners_;
  EventCount& pauses_;
  EventCount& releases_;
  std::exception_ptr merge_error_;   // thrown by a merge function, or by unequal merges
  std::atomic<bool> ending_{false};  // a replica failed: waiting replicas give up
};

}  // namespace cohort
