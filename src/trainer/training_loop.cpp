#include <cohort/trainer/detail/training_loop.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <cohort/base/log.h>
#include <cohort/base/timeline_span.h>

#include "training_checkpoints.h"

namespace cohort::detail {

namespace {

void require_positive(const char* name, std::optional<std::int64_t> number) {
  if (number && *number < 1)
    throw InvalidArgument("fit: {} is {}; it must be at least 1, or unset", name, *number);
}

void require_end(const char* function, bool has_steps, const char* steps, const Cardinality& data) {
  if (data.is_infinite() && !has_steps)
    throw InvalidArgument("{}: the dataset has no end; say by {} how many of its batches to take", function,
                          steps);
}

void require_elements(const char* function, const Cardinality& data) {
  if (data.is_known() && data.count() == 0)
    throw InvalidArgument("{}: the dataset is empty: it has not one batch", function);
}

// What can be wrong with the options of a fit, before it begins.

/// @throws InvalidArgument for options that cannot be, and for a dataset without an end or without elements.
void require_usable(const FitPlan& plan, const Cardinality& data) {
  if (plan.epochs < 0) throw InvalidArgument("fit: epochs is {}; it must be at least 0", plan.epochs);
  if (plan.initial_epoch < 0)
    throw InvalidArgument("fit: initial_epoch is {}; the first epoch is 0", plan.initial_epoch);
  require_positive("steps_per_epoch", plan.steps_per_epoch);
  require_positive("validation_steps", plan.validation_steps);
  require_positive("validation_freq", plan.validation_freq);
  for (const int epoch : plan.validation_epochs) require_positive("a number of validation_epochs", epoch);
  if (plan.max_steps && *plan.max_steps < 0)
    throw InvalidArgument("fit: max_steps is {}; it must be at least 0, or unset", *plan.max_steps);
  require_end("fit", plan.steps_per_epoch || plan.max_steps, "steps_per_epoch", data);
  require_elements("fit", data);
  if (plan.validation == nullptr) return;
  require_end("fit: validation_data", plan.validation_steps.has_value(), "validation_steps",
              plan.validation->cardinality());
  require_elements("fit: validation_data", plan.validation->cardinality());
}

/// @throws WrongContext for a variable that the strategy has not made, naming it.
void require_own(const Strategy& strategy, std::span<const Variable> parameters) {
  for (const Variable& parameter : parameters) {
    if (!strategy.extended().variable_created_in_scope(parameter))
      throw WrongContext(
          "the Trainer of {} was given the variable '{}', which it has not made; make the model in "
          "strategy.scope()",
          strategy.extended().strategy_name(), parameter.name());
  }
}

/// The steps over a dataset of which at most so many are taken, where they are known.
std::optional<std::int64_t> steps_of(std::optional<std::int64_t> most, const Cardinality& data) {
  if (!data.is_known()) return most;
  return std::min(most.value_or(data.count()), data.count());
}

/// The steps of an epoch, where they are known.
std::optional<std::int64_t> steps_of(const FitPlan& plan, const Cardinality& data) {
  if (plan.steps_per_epoch) return plan.steps_per_epoch;
  return data.is_known() ? std::optional(data.count()) : std::nullopt;
}

/// Whether the epoch, from 0, is followed by a validation.
bool validates_after(int epoch, const FitPlan& plan) {
  if (plan.validation == nullptr) return false;
  if (plan.validation_epochs.empty()) return (epoch + 1) % plan.validation_freq == 0;
  return std::ranges::find(plan.validation_epochs, epoch + 1) != plan.validation_epochs.end();
}

/// @throws InvalidArgument for a number of steps below 1, and for a dataset without an end and without it.
void require_steps(const char* function, const std::optional<std::int64_t>& steps, const Cardinality& data) {
  if (steps && *steps < 1)
    throw InvalidArgument("{}: steps is {}; it must be at least 1, or unset", function, *steps);
  require_end(function, steps.has_value(), "steps", data);
  require_elements(function, data);
}

/// The rows of all tensors, one after the other.
Tensor concatenated(const std::vector<Tensor>& parts) {
  if (parts.empty()) throw InvalidArgument("predict: the dataset is empty: it has not one batch");
  if (parts.size() == 1) return parts.front();
  std::int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.shape()[0];
  Tensor all = Tensor::uninitialized(parts.front().shape().with(0, rows), parts.front().dtype());
  std::int64_t row = 0;
  for (const Tensor& part : parts) {
    all.rows(row, row + part.shape()[0]).copy_from(part);
    row += part.shape()[0];
  }
  return all;
}

}  // namespace

TrainingLoop::TrainingLoop(Strategy strategy, std::vector<Variable> parameters, Optimizer* optimizer,
                           const MetricPlan& metrics)
    : strategy_(std::move(strategy)),
      parameters_(std::move(parameters)),
      optimizer_(optimizer),
      metrics_(strategy_, metrics) {
  require_own(strategy_, parameters_);
}

class TrainingLoop::Call {
 public:
  Call(TrainingLoop& loop, const char* function) : loop_(loop) {
    loop.require_idle(function);
    loop.running_ = function;
  }
  ~Call() { loop_.running_ = nullptr; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  TrainingLoop& loop_;
};

void TrainingLoop::require_idle(const char* function) const {
  if (running_ == nullptr) return;
  throw WrongContext(
      "{} was called within {} of the same Trainer, whose callbacks and metrics are in use; make a second "
      "Trainer of the model for it, with metrics of its own",
      function, running_);
}

template <class Hook>
void TrainingLoop::tell(Hook hook) {
  for (Callback& callback : callbacks_) strategy_.extended().or_abort_workers([&] { hook(callback); });
}

void TrainingLoop::attach(const CallbackList& callbacks) {
  callbacks_ = callbacks;
  needs_batch_logs_ = false;
  batch_logs_ = {};
  for (Callback& callback : callbacks_) {
    callback.set_training(*this);
    needs_batch_logs_ = needs_batch_logs_ || callback.needs_batch_logs();
  }
}

History TrainingLoop::fit(AnyBatches& data, const FitPlan& plan) {
  const Call call(*this, "fit");
  require_usable(plan, data.cardinality());
  const auto scope = strategy_.scope();
  begin_fit(plan, data.cardinality());
  attach(plan.callbacks);
  tell([](Callback& callback) { callback.on_train_begin({}); });
  const bool is_stopped = at_.stopped;
  // What callbacks have begun with is replaced by what they had.
  std::optional<TrainingCheckpoints> checkpoints;
  if (!plan.checkpoint.folder.empty()) checkpoints.emplace(plan, *this, callbacks_, at_, metrics_.handles());
  if (checkpoints && checkpoints->restored()) {
    history_ = History::from_text(at_.history);
    if (!params_.steps && at_.epoch_steps > 0) params_.steps = at_.epoch_steps;
  }
  warn_if_stopped(plan, checkpoints && checkpoints->restored());
  at_.stopped = at_.stopped || is_stopped;
  run_epochs(data, plan, checkpoints ? &*checkpoints : nullptr);
  if (checkpoints && plan.max_steps) checkpoints->save_last();
  if (checkpoints) checkpoints->finish();
  tell([&](Callback& callback) { callback.on_train_end(logs_); });
  return history_;
}

void TrainingLoop::warn_if_stopped(const FitPlan& plan, bool restored) const {
  if (!restored || !at_.stopped || at_.epoch >= plan.epochs || !reports()) return;
  logging::warning(
      "fit: a callback stopped the training that was restored, in epoch {} of {}; it is not trained on. To "
      "train "
      "further, name another checkpoint.folder, and restore the parameters from this one",
      at_.epoch, plan.epochs);
}

/// As for a training that begins.
void TrainingLoop::begin_fit(const FitPlan& plan, const Cardinality& data) {
  params_ = {.epochs = plan.epochs, .steps = steps_of(plan, data), .validates = plan.validation != nullptr};
  const auto first_pass = plan.steps_per_epoch ? 0 : static_cast<std::uint64_t>(plan.initial_epoch);
  const bool goes_on = plan.checkpoint.folder.empty();
  at_ = {.epoch = plan.initial_epoch, .step = goes_on ? at_.step : 0, .dataset = {.pass = first_pass}};
  history_ = {};
  logs_ = {};
  metrics_.reset();
  said_that_data_ended_ = false;
}

void TrainingLoop::run_epochs(AnyBatches& data, const FitPlan& plan, TrainingCheckpoints* checkpoints) {
  if (at_.epoch >= plan.epochs || (at_.stopped && at_.batch == 0) || has_all_steps(plan)) return;
  data.begin_at(at_.dataset);
  while (true) {
    tell([&](Callback& callback) { callback.on_epoch_begin(static_cast<int>(at_.epoch), {}); });
    if (!at_.stopped) run_steps(data, plan, checkpoints);
    if (!at_.stopped && has_all_steps(plan) && at_.batch != params_.steps) return;  // in mid-epoch
    end_epoch(plan);
    if (at_.epoch == plan.epochs || at_.stopped) return;
    if (has_all_steps(plan)) return;
    if (!plan.steps_per_epoch) data.begin_at(at_.dataset);
  }
}

void TrainingLoop::run_steps(AnyBatches& data, const FitPlan& plan, TrainingCheckpoints* checkpoints) {
  while (!at_.stopped && next(data, plan)) {
    tell([&](Callback& callback) { callback.on_train_batch_begin(at_.batch, {}); });
    if (checkpoints != nullptr)
      checkpoints->around([&] { data.run(StepKind::kTrain, metrics_); });
    else
      data.run(StepKind::kTrain, metrics_);
    if (needs_batch_logs_) metrics_.set_logs(batch_logs_);
    at_.dataset = data.position();
    ++at_.step;
    tell(
        [batch = at_.batch++, this](Callback& callback) { callback.on_train_batch_end(batch, batch_logs_); });
    if (checkpoints != nullptr) checkpoints->after_step();
  }
}

/// Fetches the next batch of the epoch; false where the epoch ends.
bool TrainingLoop::next(AnyBatches& data, const FitPlan& plan) {
  if (has_all_steps(plan) || (plan.steps_per_epoch && at_.batch >= *plan.steps_per_epoch)) return false;
  if (data.next()) return true;
  if (at_.batch == 0 && plan.steps_per_epoch) {  // the pass ended with the epoch before
    data.begin_at({.pass = data.position().pass + 1});
    if (data.next()) return true;
  }
  if (at_.batch == 0) throw InvalidArgument("fit: the dataset has not one batch for epoch {}", at_.epoch);
  if (plan.steps_per_epoch) say_that_data_ended(plan);
  return false;
}

void TrainingLoop::say_that_data_ended(const FitPlan& plan) {
  if (std::exchange(said_that_data_ended_, true) || !reports()) return;
  logging::warning(
      "fit: the dataset ended after {} of the {} steps of epoch {}; the next epoch begins a new pass. "
      "repeat() "
      "makes a dataset without an end",
      at_.batch, *plan.steps_per_epoch, at_.epoch);
}

/// And makes everything ready for the next one.
void TrainingLoop::end_epoch(const FitPlan& plan) {
  const int epoch = static_cast<int>(at_.epoch);
  at_.epoch_steps = at_.batch;
  if (!params_.steps) params_.steps = at_.batch;
  logs_ = {};
  metrics_.set_logs(logs_);
  if (validates_after(epoch, plan))
    for (const auto& [name, value] : test(*plan.validation, plan.validation_steps))
      logs_.set("val_" + name, value);
  tell([&](Callback& callback) { callback.on_epoch_end(epoch, logs_); });
  history_.add(epoch, logs_);
  at_.history = history_.to_text();
  ++at_.epoch;
  at_.batch = 0;
  // Also after the last epoch: another fit may go on from a checkpoint of it with more of them.
  if (!plan.steps_per_epoch) at_.dataset = {.pass = static_cast<std::uint64_t>(at_.epoch)};
  metrics_.reset();
}

Logs TrainingLoop::test(AnyBatches& data, std::optional<std::int64_t> steps) {
  Logs logs;
  metrics_.reset();
  tell([](Callback& callback) { callback.on_test_begin({}); });
  data.begin_at({});
  std::int64_t batch = 0;
  for (; batch != steps && data.next(); ++batch) {
    tell([&](Callback& callback) { callback.on_test_batch_begin(batch, {}); });
    data.run(StepKind::kTest, metrics_);
    if (needs_batch_logs_) metrics_.set_logs(logs);
    tell([&](Callback& callback) { callback.on_test_batch_end(batch, logs); });
  }
  if (batch == 0) throw InvalidArgument("{}: the dataset to evaluate has not one batch", running_);
  metrics_.set_logs(logs);
  tell([&](Callback& callback) { callback.on_test_end(logs); });
  return logs;
}

Logs TrainingLoop::evaluate(AnyBatches& data, const EvaluateOptions& options) {
  const Call call(*this, "evaluate");
  const TimelineSpan span("evaluate");
  require_steps("evaluate", options.steps, data.cardinality());
  const auto scope = strategy_.scope();
  params_ = {.epochs = 1, .steps = steps_of(options.steps, data.cardinality())};
  attach(options.callbacks);
  return test(data, options.steps);
}

Tensor TrainingLoop::predict(AnyBatches& data, const PredictOptions& options) {
  const Call call(*this, "predict");
  require_steps("predict", options.steps, data.cardinality());
  const auto scope = strategy_.scope();
  params_ = {.epochs = 1, .steps = steps_of(options.steps, data.cardinality())};
  attach(options.callbacks);
  tell([](Callback& callback) { callback.on_predict_begin({}); });
  std::vector<Tensor> predictions;
  data.begin_at({});
  for (std::int64_t batch = 0; batch != options.steps && data.next(); ++batch) {
    tell([&](Callback& callback) { callback.on_predict_batch_begin(batch, {}); });
    data.predict(predictions);
    tell([&](Callback& callback) { callback.on_predict_batch_end(batch, {}); });
  }
  tell([](Callback& callback) { callback.on_predict_end({}); });
  return concatenated(predictions);
}

}  // namespace cohort::detail
