// What the workers of a strategy do together, so that a failure of one ends in the same error on all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/collective/communicator.h>
#include <cohort/strategy/strategy.h>
#include <cohort/strategy/strategy_extended.h>

namespace cohort::checkpoint {

class Workers {
 public:
  /// What they do, in messages: `saves checkpoint` and its path, which may differ by worker.
  Workers(StrategyExtended& strategy, std::string_view action, const std::string& path,
          double timeout_seconds);

  /// Another communicator of the workers that pass the same `color`. Collective; null for one worker.
  [[nodiscard]] std::unique_ptr<Communicator> make_group(int color = 0) const;

  /// The workers of a communicator that make_group() has made.
  [[nodiscard]] Workers on(Communicator& communicator) const;

  [[nodiscard]] int rank() const { return size() == 1 ? 0 : communicator_->rank(); }
  [[nodiscard]] int size() const { return communicator_ == nullptr ? 1 : communicator_->size(); }
  [[nodiscard]] bool is_first() const { return rank() == 0; }

  /// Calls `work` on each worker. Returns what it returned, by worker, on all of them.
  /// @throws on all workers, if it threw on some: the error of the first of these, which names all of them.
  std::vector<std::string> together(const std::function<std::string()>& work) const;

  /// The same with work that has no result, or that only the first worker does.
  void together_do(const std::function<void()>& work) const;
  void first_does(const std::function<void()>& work) const;

  /// Sends worker `root`'s tensor to all.
  void broadcast(const Tensor& tensor, int root) const;

  /// Checks that all workers say the same. @throws InvalidArgument on all of them otherwise, naming two that
  /// differ and a line in which they do; as together(), where `text` throws.
  void agree(const std::function<std::string()>& text, const std::string& what) const;

 private:
  [[nodiscard]] std::string name_of(int worker) const;

  Communicator* communicator_;  ///< null for one worker
  std::uint64_t fingerprint_;
  std::string action_;
  double timeout_seconds_;
};

/// What one of the workers wants before a step, known to all of them one step later: the number travels while
/// the step runs, so that nobody waits for it.
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
