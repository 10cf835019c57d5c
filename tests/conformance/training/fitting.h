// What the recorded lines of callbacks train, and a callback that writes down what is called.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/loss_metrics.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/trainer.h>

#include "../show.h"
#include "recorded_fits.h"

namespace cohort::conformance {

// The row of "Deliberate differences" that several groups of lines refer to.
inline constexpr std::string_view kExamples = "examples count alike, wherever they are";

/// Ten examples, the recorded model, and its Trainer.
class Fitting {
 public:
  explicit Fitting(Strategy strategy, const SgdOptions& options = {.learning_rate = 0.1},
                   const UpdateOptions& updates = {})
      : strategy_(std::move(strategy)), optimizer_(options) {
    optimizer_.set_update_options(updates);
  }

  [[nodiscard]] Dataset<Examples> data(int batch, int count = 10) const {
    return Dataset<Examples>::from_tensor_slices(examples_of(Json::object(), count)).batch(batch);
  }
  [[nodiscard]] Json weights() const {
    return {show(model_.parameters()[0].read()), show(model_.parameters()[1].read())};
  }
  [[nodiscard]] Sgd& optimizer() { return optimizer_; }
  [[nodiscard]] Trainer<Examples>& trainer() { return trainer_; }

 private:
  Strategy strategy_;
  StrategyScope scope_ = strategy_.scope();
  RecordedModel model_ = model_of(Json::object());
  Sgd optimizer_;
  Trainer<Examples> trainer_{
      strategy_, model_, optimizer_, {.metrics = {metrics::mean_of(losses::mean_absolute_error(), "mae")}}};
};

[[nodiscard]] Json show_history(const History& history);
[[nodiscard]] Json epochs_of(const History& history);
/// Sorted.
[[nodiscard]] Json names_in(const Logs& logs);

/// Writes down the hooks that are called, or those of a list; `at` may do something in one of them.
class Recorder final : public Callback {
 public:
  using At = std::function<void(const Json& call)>;
  explicit Recorder(Json& calls, std::string name = {}, At at = {})
      : calls_(calls), name_(std::move(name)), at_(std::move(at)) {}

  [[nodiscard]] bool needs_batch_logs() const override { return true; }
  void on_train_begin(const Logs& logs) override { begin("on_train_begin", logs); }
  void on_train_end(const Logs& logs) override { note({"on_train_end", names_in(logs)}); }
  void on_epoch_begin(int epoch, const Logs& logs) override {
    note({"on_epoch_begin", epoch, names_in(logs)});
  }
  void on_epoch_end(int epoch, Logs& logs) override { note({"on_epoch_end", epoch, names_in(logs)}); }
  void on_train_batch_begin(std::int64_t batch, const Logs& logs) override {
    note({"on_train_batch_begin", batch, names_in(logs)});
  }
  void on_train_batch_end(std::int64_t batch, const Logs& logs) override {
    note({"on_train_batch_end", batch, names_in(logs)});
  }
  void on_test_begin(const Logs& logs) override { note({"on_test_begin", names_in(logs)}); }
  void on_test_end(const Logs& logs) override { note({"on_test_end", names_in(logs)}); }
  void on_test_batch_begin(std::int64_t batch, const Logs& logs) override {
    note({"on_test_batch_begin", batch, names_in(logs)});
  }
  void on_test_batch_end(std::int64_t batch, const Logs& logs) override {
    note({"on_test_batch_end", batch, names_in(logs)});
  }
  void on_predict_begin(const Logs& logs) override { begin("on_predict_begin", logs); }
  void on_predict_end(const Logs& logs) override { note({"on_predict_end", names_in(logs)}); }
  void on_predict_batch_begin(std::int64_t batch, const Logs& logs) override {
    note({"on_predict_batch_begin", batch, names_in(logs)});
  }
  void on_predict_batch_end(std::int64_t batch, const Logs& logs) override {
    note({"on_predict_batch_end", batch, names_in(logs)});
  }

 private:
  void begin(const char* hook, const Logs& logs) {
    const TrainingParams& params = training().params();
    const Json set_params = {
        "set_params", {{"verbose", 0}, {"epochs", params.epochs}, {"steps", params.steps.value_or(0)}}};
    // All callbacks of the original are told the parameters before the first hook.
    const std::size_t before = name_ == "B" ? 1 : 0;
    calls_.insert(calls_.begin() + static_cast<std::ptrdiff_t>(before), set_params);
    note({hook, names_in(logs)});
  }
  void note(Json call) {
    if (at_) {
      // Lines in which something happens have no logs.
      if (call.size() == 3)
        call.erase(2);
      else
        call[1] = Json::array();
      calls_.push_back(call);
      return at_(call);
    }
    if (!name_.empty()) call.insert(call.begin(), name_);
    calls_.push_back(call);
  }

  Json& calls_;
  std::string name_;
  At at_;
};

}  // namespace cohort::conformance
