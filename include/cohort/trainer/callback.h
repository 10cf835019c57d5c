// A Callback is told what a training does, and may change it: stop it, set the learning rate, save a
// checkpoint. Every worker has the same callbacks and calls them at the same moments, outside replicas, with
// the same logs; so what a callback decides from logs is the same everywhere, and it may make collective
// calls. What only one process should do, as printing, it does where `training().reports()`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/strategy/strategy.h>
#include <cohort/train/optimizers/optimizer.h>
#include <cohort/trainer/logs.h>

namespace cohort {

/// What was asked of `fit`, `evaluate` or `predict`.
struct TrainingParams {
  int epochs = 1;
  std::optional<std::int64_t> steps = {};  ///< of an epoch, where it is known
  bool validates = false;                  ///< after some epochs there is a validation
};

/// What callbacks see of the training that they belong to.
class Training {
 public:
  virtual ~Training() = default;

  [[nodiscard]] virtual const Strategy& strategy() const = 0;
  [[nodiscard]] virtual std::span<const Variable> parameters() const = 0;
  /// Null where the training was made from a function of a step that names no optimizer.
  [[nodiscard]] virtual Optimizer* optimizer() const = 0;
  [[nodiscard]] virtual const TrainingParams& params() const = 0;
  /// Steps since the Trainer was made, through all its fits; of a fit with checkpoints, since the beginning
  /// of the training that these are of.
  [[nodiscard]] virtual std::int64_t step() const = 0;
  /// Whether this process prints and writes logs: the chief's.
  [[nodiscard]] virtual bool reports() const = 0;

  /// Ends `fit` after the batch that is under way, and its epoch with it. Every worker calls it alike.
  virtual void stop() = 0;
  [[nodiscard]] virtual bool stopped() const = 0;
};

class Callback {
 public:
  Callback() = default;
  virtual ~Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  /// Whether it reads the logs of each batch. These are means over all replicas since the epoch began, and
  /// cost a collective in each step; without such a callback they are empty.
  [[nodiscard]] virtual bool needs_batch_logs() const { return false; }

  virtual void on_train_begin(const Logs& /*logs*/) {}
  virtual void on_train_end(const Logs& /*logs*/) {}
  virtual void on_epoch_begin(int /*epoch*/, const Logs& /*logs*/) {}
  /// May add to the logs of the epoch, which later callbacks and the history have then.
  virtual void on_epoch_end(int /*epoch*/, Logs& /*logs*/) {}
  virtual void on_train_batch_begin(std::int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_train_batch_end(std::int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_test_begin(const Logs& /*logs*/) {}
  virtual void on_test_end(const Logs& /*logs*/) {}
  virtual void on_test_batch_begin(std::int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_test_batch_end(std::int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_predict_begin(const Logs& /*logs*/) {}
  virtual void on_predict_end(const Logs& /*logs*/) {}
  virtual void on_predict_batch_begin(std::int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_predict_batch_end(std::int64_t /*batch*/, const Logs& /*logs*/) {}

  /// Adds what it has to know after a restart to the checkpoints of `fit`, as `PREFIX/NAME/...` with a name
  /// of its own kind; a second callback of a kind in the list has another prefix. Called after
  /// on_train_begin; then a checkpoint may be restored, before the first epoch.
  virtual void add_state(Checkpoint& /*checkpoint*/, const std::string& /*prefix*/) {}

  /// Called before any hook; the training outlives the calls that follow.
  void set_training(Training& training) { training_ = &training; }

 protected:
  /// @throws Internal before set_training.
  [[nodiscard]] Training& training() const {
    COHORT_CHECK(training_ != nullptr);
    return *training_;
  }

 private:
  Training* training_ = nullptr;
};

}  // namespace cohort
