// Progress shows how far a training is, on the chief only: on a terminal, one line that is drawn anew, and in
// job logs, a plain line now and then, and one for each epoch.
//
//     Progress progress;
//     trainer.fit(train, {.epochs = 5, .callbacks = {progress}});
//
//     epoch 2/5  120/938 [===>                ]  loss 0.3127  accuracy 0.9121  3.1 ms/step  0:02 left
//     epoch 2/5: 938 steps in 2.9 s, loss 0.2514, accuracy 0.9286, val_loss 0.2310
//
// Between two drawings a step costs a reading of the clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include <cohort/trainer/callback.h>

namespace cohort {

enum class ProgressStyle {
  kAuto,   ///< as `stream` is: kLine for a terminal, kPlain for anything else
  kLine,   ///< one line, drawn anew
  kPlain,  ///< lines
};

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::kAuto;
  std::FILE* stream = stdout;  ///< outlives the callback
  /// Between two drawings; unset: 0.1 of one line, and 10 between plain lines within an epoch.
  std::optional<double> seconds = {};
  /// Whether the line has the loss and the metrics since the epoch began. Where there are several workers,
  /// that costs a collective in each step; unset: where there is one.
  std::optional<bool> batch_logs = {};
};

class Progress final : public Callback {
 public:
  /// @throws InvalidArgument for negative seconds.
  explicit Progress(const ProgressOptions& options = {});

  [[nodiscard]] bool needs_batch_logs() const override;
  void on_epoch_begin(int epoch, const Logs& logs) override;
  void on_train_batch_end(std::int64_t batch, const Logs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;

 private:
  using Clock = std::chrono::steady_clock;

  void draw_line(std::int64_t done, const Logs& logs, Clock::time_point now);
  void write_plain(std::int64_t done, const Logs& logs, Clock::time_point now);
  void write_epoch(const Logs& logs, Clock::time_point now);
  void append_pace(std::int64_t done, Clock::time_point now, const char* separator);
  void write();

  ProgressOptions options_;
  bool is_line_;
  std::chrono::duration<double> rhythm_;
  int epoch_ = 0;
  std::int64_t first_batch_ = -1;  ///< of this run; an epoch that goes on does not begin at 0
  std::int64_t done_ = 0;          ///< batches of the epoch
  Clock::time_point begin_;        ///< of the epoch, or of its part in this run
  Clock::time_point next_;         ///< drawing
  std::size_t drawn_ = 0;          ///< characters of the line that is on the terminal
  fmt::memory_buffer text_;
};

}  // namespace cohort
