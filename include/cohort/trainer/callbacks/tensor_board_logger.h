// TensorBoardLogger writes how a training goes for TensorBoard, in two runs of one folder: `train`, and
// `validation` if there is one. The chief writes; see SummaryWriter.
//
//     TensorBoardLogger board("logs", {.every_steps = 100, .hyperparameters = {{"rate", 0.1}}});
//     trainer.fit(train, {.epochs = 5, .validation_data = test, .callbacks = {board}});
//
// Its tags are those of Keras: `epoch_loss`, `epoch_learning_rate` and so on at the number of the epoch;
// `batch_loss` and so on at the number of steps of the training, means over the epoch so far; and
// `evaluation_loss_vs_iterations` at the steps after which it was evaluated, in `evaluate` too. What a
// restart repeats replaces what was there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <cohort/summary/summary_writer.h>
#include <cohort/trainer/callback.h>

namespace cohort {

struct TensorBoardLoggerOptions {
  /// The logs of steps that are multiples of it too. Where there are several workers, that costs a collective
  /// in each step. 0: those of epochs alone.
  std::int64_t every_steps = 0;
  int histograms_every_epochs = 0;  ///< of the parameters, after epochs 0, so many, ...; 0: none
  Hyperparameters hyperparameters = {};
  SummaryWriterOptions writer = {};
};

class TensorBoardLogger final : public Callback {
 public:
  /// @throws InvalidArgument for negative numbers.
  explicit TensorBoardLogger(std::string folder, TensorBoardLoggerOptions options = {});

  [[nodiscard]] bool needs_batch_logs() const override { return options_.every_steps > 0; }
  void on_train_begin(const Logs& logs) override;
  /// @throws Unavailable, naming the file, where it cannot be opened or written; and so do all that write.
  void on_epoch_begin(int epoch, const Logs& logs) override;
  void on_train_batch_end(std::int64_t batch, const Logs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void on_test_end(const Logs& logs) override;
  /// Closes the files.
  void on_train_end(const Logs& logs) override;
  void add_state(Checkpoint& checkpoint, const std::string& prefix) override;

 private:
  void open(std::optional<SummaryWriter>& writer, const char* run);
  void close();
  void add(SummaryWriter& writer, std::string_view before, std::string_view name, std::string_view after,
           double value, std::int64_t step);
  void add_histograms(int epoch);

  std::string folder_;
  TensorBoardLoggerOptions options_;
  std::optional<SummaryWriter> train_;
  std::optional<SummaryWriter> validation_;
  bool has_begun_ = false;               ///< true in all checkpoints
  std::optional<std::int64_t> restart_;  ///< the first step of this training, if it goes on
  std::string tag_;                      ///< keeps its memory
};

}  // namespace cohort
