// A PreemptionCheckpointHandler saves a job that is about to be ended, because of its time limit or for a
// more urgent one, and lets it go on from there when it is started again.
//
//     CheckpointManager manager(checkpoint, "checkpoints");
//     PreemptionCheckpointHandler handler(manager);      // restores the newest checkpoint
//     while (handler.total_run_calls() < steps) handler.run([&] { train_step(); });
//     handler.finish();
//
// SIGTERM, SIGUSR1 or SIGUSR2 at one worker is enough. In the step after next at the latest, all workers save
// the same step. Then Preempted is thrown on all of them, which leaves `main` by its exit code:
//
//     mpi::Session session(argc, argv);
//     try {
//       train(session);
//     } catch (const Preempted& preempted) {
//       return preempted.exit_code();
//     }
//
// The signals are handled as before when the handler is destroyed, but ignored after a Preempted: a launcher
// that ends the other workers when the first one has ended must not change their exit status.
//
// All workers of the checkpoint's strategy make the same calls, in cross-replica context. One thread at a
// time.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/checkpoint/termination_config.h>

namespace cohort {

/// The program has saved its state, and is to end now and to be started again. No Error: nothing failed.
class Preempted : public std::exception {
 public:
  Preempted(std::string text, int exit_code) : text_(std::move(text)), exit_code_(exit_code) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  std::string text_;
  int exit_code_;
};

class PreemptionCheckpointHandler {
 public:
  /// Restores the newest checkpoint of `manager`, which outlives the handler. Collective.
  /// @throws as CheckpointManager::restore_latest; InvalidArgument for wrong values, and where workers have
  /// others; Unimplemented for strategies whose variables are kept by other tasks.
  explicit PreemptionCheckpointHandler(CheckpointManager& manager, TerminationConfig config = {});

  /// With a manager of its own that keeps one checkpoint.
  PreemptionCheckpointHandler(Checkpoint& checkpoint, std::string folder, TerminationConfig config = {});
  ~PreemptionCheckpointHandler();
  PreemptionCheckpointHandler(const PreemptionCheckpointHandler&) = delete;
  PreemptionCheckpointHandler& operator=(const PreemptionCheckpointHandler&) = delete;

  /// What the constructor restored.
  [[nodiscard]] const LatestCheckpoint& restored() const noexcept;

  /// The number of steps: those of the checkpoint that was restored, and the calls of `run` since. The next
  /// checkpoint has this step; number your own alike.
  [[nodiscard]] std::int64_t total_run_calls() const noexcept;

  /// Checks whether to save; then calls `step` with the arguments, which makes one step of training, and
  /// returns its result. An error of it on one worker ends what the others wait for, too.
  /// @throws Preempted, and what `step`, exit_fn, save_fn and CheckpointManager::save throw.
  template <class Step, class... Args>
  auto run(Step&& step, Args&&... args) {
    check();
    return run_unchecked(std::forward<Step>(step), std::forward<Args>(args)...);
  }

  /// As `run`, without the check: for a step that goes on with what the one before has begun, so that a
  /// checkpoint between the two would lose it. All workers leave out the same checks.
  template <class Step, class... Args>
  auto run_unchecked(Step&& step, Args&&... args) {
    const auto call = [&] { return std::invoke(std::forward<Step>(step), std::forward<Args>(args)...); };
    if constexpr (std::is_void_v<decltype(call())>) {
      watch_preemption_scope(call);
      count_step();
    } else {
      auto result = watch_preemption_scope(call);
      count_step();
      return result;
    }
  }

  /// In place of `run`: checks whether to save, and counts the step that comes after it. @throws as `run`.
  void save_checkpoint_if_preempted();

  /// Calls `work`, which is no step. An error of it on one worker ends what the others wait for, too.
  template <class Work>
  auto watch_preemption_scope(Work&& work) {
    try {
      return std::forward<Work>(work)();
    } catch (...) {
      fail(std::current_exception());
      throw;
    }
  }

  /// To be called after the last step: a request that came in the last two steps is answered, too; and one
  /// whose grace period has begun. @throws as `run`.
  void finish();

 private:
  class Impl;
  void check();
  void count_step() noexcept;
  void fail(const std::exception_ptr& error);

  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort
