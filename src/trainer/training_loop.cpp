#include <cohort/trainer/detail/training_loop.h>

#include <algorithm>
#include <utility>

#include <cohort/base/log.h>

#include "trainer/fit_checks.h"

namespace cohort::detail {
namespace {

/// The rows of all tensors, one after the other.
Tensor concatenated(const std::vector<Tensor>& parts) {
  if (parts.empty()) throw InvalidArgument("predict: the dataset is empty: it has not one batch");
  if (parts.size() == 1) return parts.front();
  std::int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.shape()[0];
  const Tensor all = Tensor::uninitialized(parts.front().shape().with(0, rows), parts.front().dtype());
  std::int64_t row = 0;
  for (const Tensor& part : parts) {
    all.rows(row, row + part.shape()[0]).copy_from(part);
    row += part.shape()[0];
  }
  return all;
}

}  // namespace

TrainingLoop::TrainingLoop(Strategy strategy, std::vector<Variable> parameters, Optimizer* optimizer)
    : strategy_(std::move(strategy)),
      parameters_(std::move(parameters)),
      optimizer_(optimizer),
      train_totals_(strategy_),
      test_totals_(strategy_) {}

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
  require_usable(plan, data.cardinality());
  const auto scope = strategy_.scope();
  params_ = {.epochs = plan.epochs, .steps = steps_of(plan, data.cardinality())};
  history_ = {};
  logs_ = {};
  stopped_ = false;
  said_that_data_ended_ = false;
  attach(plan.callbacks);
  tell([](Callback& callback) { callback.on_train_begin({}); });
  if (plan.steps_per_epoch) data.begin_at({});
  for (epoch_ = plan.initial_epoch; epoch_ < plan.epochs && !stopped_; ++epoch_) run_epoch(data, plan);
  tell([&](Callback& callback) { callback.on_train_end(logs_); });
  return history_;
}

void TrainingLoop::run_epoch(AnyBatches& data, const FitPlan& plan) {
  batch_ = 0;
  train_totals_.reset();
  if (!plan.steps_per_epoch) data.begin_at({.pass = static_cast<std::uint64_t>(epoch_)});
  tell([&](Callback& callback) { callback.on_epoch_begin(epoch_, {}); });
  run_steps(data, plan);
  if (!params_.steps) params_.steps = batch_;
  logs_ = {};
  train_totals_.set_logs(logs_);
  if (validates_after(epoch_, plan)) validate(plan);
  tell([&](Callback& callback) { callback.on_epoch_end(epoch_, logs_); });
  history_.add(epoch_, logs_);
}

void TrainingLoop::run_steps(AnyBatches& data, const FitPlan& plan) {
  while (next(data, plan)) {
    tell([&](Callback& callback) { callback.on_train_batch_begin(batch_, {}); });
    data.run(StepKind::kTrain, train_totals_);
    if (needs_batch_logs_) train_totals_.set_logs(batch_logs_);
    ++step_;
    tell([&](Callback& callback) { callback.on_train_batch_end(batch_, batch_logs_); });
    ++batch_;
    if (stopped_) return;
  }
}

/// Fetches the next batch of the epoch; false where the epoch ends.
bool TrainingLoop::next(AnyBatches& data, const FitPlan& plan) {
  if (plan.steps_per_epoch && batch_ == *plan.steps_per_epoch) return false;
  if (data.next()) return true;
  if (batch_ == 0 && plan.steps_per_epoch) {  // the pass ended with the epoch before
    data.begin_at({.pass = data.position().pass + 1});
    if (data.next()) return true;
  }
  if (batch_ == 0) throw InvalidArgument("fit: the dataset has not one batch for epoch {}", epoch_);
  if (plan.steps_per_epoch && !std::exchange(said_that_data_ended_, true) && reports())
    logging::warning(
        "fit: the dataset ended after {} of the {} steps of epoch {}; the next epoch begins a new pass. "
        "repeat() makes a dataset without an end",
        batch_, *plan.steps_per_epoch, epoch_);
  return false;
}

void TrainingLoop::validate(const FitPlan& plan) {
  for (const auto& [name, value] : test(*plan.validation, plan.validation_steps))
    logs_.set("val_" + name, value);
}

Logs TrainingLoop::test(AnyBatches& data, std::optional<std::int64_t> steps) {
  Logs logs;
  test_totals_.reset();
  tell([](Callback& callback) { callback.on_test_begin({}); });
  data.begin_at({});
  for (std::int64_t batch = 0; batch != steps && data.next(); ++batch) {
    tell([&](Callback& callback) { callback.on_test_batch_begin(batch, {}); });
    data.run(StepKind::kTest, test_totals_);
    if (needs_batch_logs_) test_totals_.set_logs(logs);
    tell([&](Callback& callback) { callback.on_test_batch_end(batch, logs); });
  }
  test_totals_.set_logs(logs);
  tell([&](Callback& callback) { callback.on_test_end(logs); });
  return logs;
}

Logs TrainingLoop::evaluate(AnyBatches& data, const EvaluateOptions& options) {
  require_steps("evaluate", options.steps, data.cardinality());
  const auto scope = strategy_.scope();
  params_ = {.epochs = 1, .steps = options.steps};
  attach(options.callbacks);
  return test(data, options.steps);
}

Tensor TrainingLoop::predict(AnyBatches& data, const PredictOptions& options) {
  require_steps("predict", options.steps, data.cardinality());
  const auto scope = strategy_.scope();
  params_ = {.epochs = 1, .steps = options.steps};
  attach(options.callbacks);
  tell([](Callback& callback) { callback.on_predict_begin({}); });
  std::vector<Tensor> predictions;
  data.begin_at({});
  for (std::int64_t batch = 0; batch != options.steps && data.next(); ++batch) {
    tell([&](Callback& callback) { callback.on_predict_batch_begin(batch, {}); });
    predictions.push_back(data.predict());
    tell([&](Callback& callback) { callback.on_predict_batch_end(batch, {}); });
  }
  tell([](Callback& callback) { callback.on_predict_end({}); });
  return concatenated(predictions);
}

}  // namespace cohort::detail
