// What one of the workers wants before a step, known to all of them one step later: the number travels while
// the step runs, so that nobody waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <cohort/base/error.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/collective/communicator.h>
#include <cohort/strategy/strategy_extended.h>

namespace cohort::checkpoint {

class StepVote {
 public:
  /// Collective. All workers must have the same `purpose`, which follows a worker's name in messages.
  /// @throws InvalidArgument where purposes differ, and as Communicator::split.
  StepVote(StrategyExtended& strategy, const std::string& purpose);
  /// Waits for what is under way, unless an exception is: then the other workers' votes fail, too.
  ~StepVote();
  StepVote(const StepVote&) = delete;
  StepVote& operator=(const StepVote&) = delete;

  /// Every worker calls it before each step. Returns the largest number that a worker passed in the call
  /// before this one, on all of them; 0 in the first call.
  std::int64_t cast(std::int64_t own);

  /// The largest number that a worker passes in this call or passed in the one before.
  std::int64_t cast_and_wait(std::int64_t own);

  /// Waits for the call that is under way, when all workers are known to have made it. If that fails, the
  /// next call says so.
  void settle() noexcept;

  /// This worker casts no vote any more: the votes of all workers end with this error.
  void abort(const Error& error);

  /// A worker in messages: `worker 1 (host n0)`.
  [[nodiscard]] std::string name_of(int worker) const;

 private:
  std::int64_t result();

  std::unique_ptr<Communicator> communicator_;  ///< null for one worker
  PurposeOf<std::function<PurposeWords()>> purpose_;
  std::optional<CommunicationScope> scope_;
  Tensor vote_ = Tensor::scalar(std::int64_t{0});
  std::optional<Work> work_;
  int exceptions_at_start_;
};

}  // namespace cohort::checkpoint
