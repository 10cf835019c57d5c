// CsvLogger and JsonLinesLogger write how a training goes to one file, which the chief has: a row for each
// epoch and, if asked, for some of its steps.
//
//     CsvLogger table("training.csv");
//     // epoch,step,learning_rate,loss,val_loss
//     JsonLinesLogger lines("training.jsonl", {.every_steps = 100});
//     // {"epoch":0,"batch":99,"step":100,...}
//
// A row has the number of the epoch, from 0; the batch of the epoch, if it is one of a step; the steps of the
// training so far; the learning rate, if there is an optimizer; and the logs. It is in the file when the next
// step begins. Where `fit` has checkpoints, a restart keeps the rows that were there when the checkpoint was
// made: the file is as if the training had never ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cohort/trainer/callback.h>

namespace cohort {

class LogFile;

/// What both have in common.
class RowLogger : public Callback {
 public:
  ~RowLogger() override;

  [[nodiscard]] bool needs_batch_logs() const override { return every_steps_ > 0; }
  void on_train_begin(const Logs& logs) override;
  /// @throws Unavailable, naming the file, where it cannot be opened or written; and so do all that write.
  void on_epoch_begin(int epoch, const Logs& logs) override;
  void on_train_batch_end(std::int64_t batch, const Logs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  /// Closes the file.
  void on_train_end(const Logs& logs) override;
  void add_state(Checkpoint& checkpoint, const std::string& prefix) override;

 protected:
  /// @throws InvalidArgument for negative steps.
  RowLogger(std::string path, std::int64_t every_steps, bool append);

  [[nodiscard]] LogFile& file() const { return *file_; }

 private:
  /// Called once, before rows are added to what the file has. Returns how many of its lines are no rows.
  virtual std::int64_t begin_file() = 0;
  virtual void append(const Logs& row) = 0;

  void open();
  void write(Logs& row, const Logs& logs);

  std::string path_;
  std::int64_t every_steps_;
  bool append_;
  std::unique_ptr<LogFile> file_;  ///< where this process writes, during a training
  std::int64_t rows_ = -1;         ///< in the file; negative before it is open
  int epoch_ = 0;
  Logs batch_row_;  ///< its names are always the same, and cost no memory again
};

struct CsvLoggerOptions {
  std::int64_t every_steps = 0;  ///< a row for steps that are multiples of it too; 0: for epochs alone
  bool append = false;           ///< to a table that is there, which is replaced otherwise
  char separator = ',';
};

/// A table with a header, which grows a column when a row has a new number: what rows do not have is `NA`.
class CsvLogger final : public RowLogger {
 public:
  /// @throws InvalidArgument for negative steps, and for separators that are part of numbers, quotation marks
  /// or ends of lines.
  explicit CsvLogger(std::string path, const CsvLoggerOptions& options = {});

 private:
  std::int64_t begin_file() override;
  void append(const Logs& row) override;
  [[nodiscard]] bool add_columns(const Logs& row);
  void widen(std::size_t before);
  [[nodiscard]] std::string header() const;

  char separator_;
  std::vector<std::string> columns_;
  std::string line_;
};

struct JsonLinesLoggerOptions {
  std::int64_t every_steps = 0;  ///< a row for steps that are multiples of it too; 0: for epochs alone
  bool append = false;           ///< to a file that is there, which is replaced otherwise
};

/// An object in each line. What JSON has no number for is "NaN", "Infinity" or "-Infinity".
class JsonLinesLogger final : public RowLogger {
 public:
  /// @throws InvalidArgument for negative steps.
  explicit JsonLinesLogger(std::string path, const JsonLinesLoggerOptions& options = {});

 private:
  std::int64_t begin_file() override;
  void append(const Logs& row) override;

  std::string line_;
};

}  // namespace cohort
