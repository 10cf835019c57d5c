// One concurrent `run`: L replicas on L threads, the points where they merge, and how
// all of them end when one fails.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <cohort/device/device_thread.h>
#include <cohort/strategy/replica_context.h>
#include <cohort/value/variable_creator_scope.h>

namespace cohort {

/// The text of any exception.
[[nodiscard]] std::string what_of(const std::exception_ptr& error);

class ReplicaRun final : public MergePoint {
 public:
  ReplicaRun(StrategyExtended& extended, const std::function<void(ReplicaContext&)>& body);

  /// Runs `body` on every thread of `team` and serves their merges on the calling thread.
  /// @throws the exception of the lowest replica that failed by itself, or of a merge function.
  void execute(std::vector<std::unique_ptr<DeviceThread>>& team);

  std::shared_ptr<void> meet(int local_replica, MergeRequest& request) override;

 private:
  enum class Phase { kRunning, kMerging, kDone, kFailed };

  /// Who made a replica end: itself, or another one. An Aborted error comes from a collective that
  /// another one's failure ended, unless nobody has failed: then it is the replica's own.
  enum class Blame { kOwn, kOther, kOtherIfAnyFailed };

  struct Seat {
    Phase phase = Phase::kRunning;
    MergeRequest* request = nullptr;
    std::shared_ptr<void> merged;
    int merges = 0;
    std::exception_ptr error;
    bool gave_up = false;  // ended because another replica failed first
  };

  void run_replica(int local_replica);
  void record_failure(int local_replica, const std::exception_ptr& error, Blame blame);
  void serve_merges();
  [[nodiscard]] bool all_paused() const;
  void merge_all(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::exception_ptr unequal_merges() const;
  [[nodiscard]] std::exception_ptr first_error() const;

  StrategyExtended& extended_;
  const std::function<void(ReplicaContext&)>& body_;
  const VariableCreatorScope* creators_ = VariableCreatorScope::innermost();  // of the calling thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Seat> seats_;
  std::exception_ptr merge_error_;  // thrown by a merge function, or by unequal merges
  bool ending_ = false;             // somebody failed: whoever waits gives up
};

}  // namespace cohort
