// The loops of a Trainer, for batches of any kind: which step, callback, validation and checkpoint comes
// when.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/input/pass.h>
#include <cohort/strategy/strategy.h>
#include <cohort/trainer/callback.h>
#include <cohort/trainer/detail/training_steps.h>
#include <cohort/trainer/evaluate_options.h>
#include <cohort/trainer/fit_checkpoint.h>
#include <cohort/trainer/history.h>

namespace cohort::detail {

/// How far a fit has come.
struct FitPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;        ///< of the epoch: so many are done
  std::int64_t step = 0;         ///< through all epochs
  DatasetPosition dataset = {};  ///< of the following batch
  std::int64_t epoch_steps = 0;  ///< of the epoch before
  bool stopped = false;
  std::string history = {};  ///< as text
};

class TrainingCheckpoints;

/// FitOptions for batches of any kind.
struct FitPlan {
  int epochs = 1;
  int initial_epoch = 0;
  std::optional<std::int64_t> steps_per_epoch = {};
  std::optional<std::int64_t> max_steps = {};
  AnyBatches* validation = nullptr;
  std::optional<std::int64_t> validation_steps = {};
  int validation_freq = 1;
  std::vector<int> validation_epochs = {};
  CallbackList callbacks = {};
  FitCheckpoint checkpoint = {};
};

class TrainingLoop final : public Training {
 public:
  TrainingLoop(Strategy strategy, std::vector<Variable> parameters, Optimizer* optimizer,
               const MetricPlan& metrics);

  /// @throws WrongContext while `fit`, `evaluate` or `predict` runs, for a call of `function` within it.
  void require_idle(const char* function) const;

  History fit(AnyBatches& data, const FitPlan& plan);
  Logs evaluate(AnyBatches& data, const EvaluateOptions& options);
  Tensor predict(AnyBatches& data, const PredictOptions& options);

  [[nodiscard]] const Strategy& strategy() const override { return strategy_; }
  [[nodiscard]] std::span<const Variable> parameters() const override { return parameters_; }
  [[nodiscard]] Optimizer* optimizer() const override { return optimizer_; }
  [[nodiscard]] const TrainingParams& params() const override { return params_; }
  [[nodiscard]] std::int64_t step() const override { return at_.step; }
  [[nodiscard]] bool reports() const override { return strategy_.extended().should_save_summary(); }
  void stop() override { at_.stopped = true; }
  [[nodiscard]] bool stopped() const override { return at_.stopped; }

 private:
  void begin_fit(const FitPlan& plan, const Cardinality& data);
  void run_epochs(AnyBatches& data, const FitPlan& plan, TrainingCheckpoints* checkpoints);
  void run_steps(AnyBatches& data, const FitPlan& plan, TrainingCheckpoints* checkpoints);
  void end_epoch(const FitPlan& plan);
  [[nodiscard]] bool has_all_steps(const FitPlan& plan) const {
    return plan.max_steps && at_.step >= *plan.max_steps;
  }
  [[nodiscard]] bool next(AnyBatches& data, const FitPlan& plan);
  void say_that_data_ended(const FitPlan& plan);
  Logs test(AnyBatches& data, std::optional<std::int64_t> steps);
  void attach(const CallbackList& callbacks);

  /// One call of `fit`, `evaluate` or `predict`, within which there is no other.
  class Call;
  void warn_if_stopped(const FitPlan& plan, bool restored) const;

  /// Calls the hook of each callback in turn. An error of one worker's ends what the others wait for.
  template <class Hook>
  void tell(Hook hook);

  Strategy strategy_;
  std::vector<Variable> parameters_;
  Optimizer* optimizer_;
  TrainingParams params_;
  EpochMetrics metrics_;
  CallbackList callbacks_;         ///< of the call that runs
  bool needs_batch_logs_ = false;  ///< one of them does
  FitPosition at_;
  History history_;
  Logs logs_;        ///< of the epoch
  Logs batch_logs_;  ///< empty unless somebody reads them
  bool said_that_data_ended_ = false;
  const char* running_ = nullptr;  ///< the function that runs
};

}  // namespace cohort::detail
