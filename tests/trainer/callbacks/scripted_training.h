// A Training that is told what happens, to see what a callback makes of it.
#pragma once

#include <span>
#include <vector>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callback.h>

namespace cohort::testing {

class ScriptedTraining final : public Training {
 public:
  explicit ScriptedTraining(TrainingParams params = {.epochs = 100}) : params_(params) {}

  [[nodiscard]] const Strategy& strategy() const override { return strategy_; }
  [[nodiscard]] std::span<const Variable> parameters() const override { return parameters_; }
  [[nodiscard]] Optimizer* optimizer() const override { return &optimizer_; }
  [[nodiscard]] const TrainingParams& params() const override { return params_; }
  [[nodiscard]] std::int64_t step() const override { return step_; }
  [[nodiscard]] bool reports() const override { return reports_; }
  void stop() override { stopped_ = true; }
  [[nodiscard]] bool stopped() const override { return stopped_; }

  void begin(Callback& callback) {
    stopped_ = false;
    callback.set_training(*this);
    callback.on_train_begin({});
  }

  /// An epoch of one step that ends with this value; the parameter has the epoch's number then. Returns the
  /// logs that the callback has left.
  Logs epoch(Callback& callback, int number, const std::string& name, double value) {
    callback.on_epoch_begin(number, {});
    ++step_;
    parameters_[0].assign(Tensor::scalar(static_cast<float>(number)));
    Logs logs;
    logs.set(name, value);
    callback.on_epoch_end(number, logs);
    return logs;
  }

  [[nodiscard]] float weight() const { return parameters_[0].read().item<float>(); }
  void set_reports(bool reports) { reports_ = reports; }
  void set_step(std::int64_t step) { step_ = step; }

 private:
  TrainingParams params_;
  OneDeviceStrategy strategy_{Device::cpu(0)};
  StrategyScope scope_ = strategy_.scope();
  std::vector<Variable> parameters_ = {Variable({.name = "w", .initial_value = Tensor::scalar(-1.0F)})};
  mutable Sgd optimizer_{{.learning_rate = 1.0}};
  std::int64_t step_ = 0;
  bool stopped_ = false;
  bool reports_ = true;
};

}  // namespace cohort::testing
