// FunctionCallback calls functions of the program at the moments of a training:
//
//     FunctionCallback print({.on_epoch_end = [](int epoch, Logs& logs) {
//       fmt::print("{}: {}\n", epoch, *logs.find("loss"));
//     }});
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <cohort/trainer/callback.h>

namespace cohort {

/// Those that are there are called.
struct CallbackFunctions {
  std::function<void(const Logs&)> on_train_begin = {};
  std::function<void(const Logs&)> on_train_end = {};
  std::function<void(int, const Logs&)> on_epoch_begin = {};
  std::function<void(int, Logs&)> on_epoch_end = {};
  std::function<void(std::int64_t, const Logs&)> on_train_batch_begin = {};
  std::function<void(std::int64_t, const Logs&)> on_train_batch_end = {};
  bool needs_batch_logs = false;  ///< on_train_batch_end reads its logs
};

class FunctionCallback final : public Callback {
 public:
  explicit FunctionCallback(CallbackFunctions functions) : functions_(std::move(functions)) {}

  [[nodiscard]] bool needs_batch_logs() const override { return functions_.needs_batch_logs; }

  void on_train_begin(const Logs& logs) override { call(functions_.on_train_begin, logs); }
  void on_train_end(const Logs& logs) override { call(functions_.on_train_end, logs); }
  void on_epoch_begin(int epoch, const Logs& logs) override { call(functions_.on_epoch_begin, epoch, logs); }
  void on_epoch_end(int epoch, Logs& logs) override { call(functions_.on_epoch_end, epoch, logs); }
  void on_train_batch_begin(std::int64_t batch, const Logs& logs) override {
    call(functions_.on_train_batch_begin, batch, logs);
  }
  void on_train_batch_end(std::int64_t batch, const Logs& logs) override {
    call(functions_.on_train_batch_end, batch, logs);
  }

 private:
  template <class Function, class... Args>
  static void call(const Function& function, Args&&... args) {
    if (function) function(std::forward<Args>(args)...);
  }

  CallbackFunctions functions_;
};

}  // namespace cohort
