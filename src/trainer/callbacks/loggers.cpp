// Callbacks that write logs: rows of CSV and JSON, and the event files of TensorBoard.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <cohort/trainer/callbacks/row_loggers.h>
#include <cohort/trainer/callbacks/tensor_board_logger.h>

#include "base/json.h"
#include "summary/log_file.h"

namespace cohort {
namespace {

constexpr std::string_view kEpoch = "epoch";
constexpr std::string_view kStep = "step";
constexpr std::string_view kBatch = "batch";
constexpr std::string_view kLearningRate = "learning_rate";
constexpr std::string_view kMissing = "NA";
constexpr std::string_view kOfValidation = "val_";

}  // namespace

RowLogger::RowLogger(std::string path, std::int64_t every_steps, bool append)
    : path_(std::move(path)), every_steps_(every_steps), append_(append) {
  if (every_steps < 0)
    throw InvalidArgument("the log '{}': every_steps is {}, and must not be negative", path_, every_steps);
}

RowLogger::~RowLogger() = default;

void RowLogger::on_train_begin(const Logs& /*logs*/) {
  file_.reset();
  rows_ = -1;
  batch_row_ = {};
}

/// A checkpoint has been restored by then, if there is one.
void RowLogger::on_epoch_begin(int epoch, const Logs& /*logs*/) {
  epoch_ = epoch;
  if (file_ == nullptr && training().reports()) open();
}

void RowLogger::open() {
  const bool goes_on = append_ || rows_ >= 0;
  file_ = std::make_unique<LogFile>(path_, goes_on ? LogFile::Begin::kAtEnd : LogFile::Begin::kEmpty);
  const std::int64_t others = begin_file();
  if (rows_ >= 0)
    file_->keep_lines([left = others + rows_](std::string_view /*line*/) mutable { return left-- > 0; });
  const std::string text = file_->read();
  rows_ = std::ranges::count(text, '\n') - others;
}

void RowLogger::on_train_batch_end(std::int64_t batch, const Logs& logs) {
  if (file_ == nullptr || every_steps_ == 0 || training().step() % every_steps_ != 0) return;
  batch_row_.set(kEpoch, epoch_);
  batch_row_.set(kBatch, static_cast<double>(batch));
  write(batch_row_, logs);
}

void RowLogger::on_epoch_end(int epoch, Logs& logs) {
  if (file_ == nullptr) return;
  Logs row;
  row.set(kEpoch, epoch);
  write(row, logs);
}

void RowLogger::write(Logs& row, const Logs& logs) {
  row.set(kStep, static_cast<double>(training().step()));
  if (const Optimizer* optimizer = training().optimizer(); optimizer != nullptr)
    row.set(kLearningRate, optimizer->learning_rate());
  for (const auto& [name, value] : logs) {
    if (name == kEpoch || name == kStep || name == kBatch)
      throw InvalidArgument("the log '{}' has a column '{}' of its own; give the metric another name", path_,
                            name);
    row.set(name, value);
  }
  append(row);
  file_->flush();
  ++rows_;
}

void RowLogger::on_train_end(const Logs& /*logs*/) {
  if (file_ != nullptr) file_->close();
  file_.reset();
}

void RowLogger::add_state(Checkpoint& checkpoint, const std::string& prefix) {
  checkpoint.add(fmt::format("{}/rows_of/{}", prefix, std::filesystem::path(path_).filename().string()),
                 rows_);
}

CsvLogger::CsvLogger(std::string path, const CsvLoggerOptions& options)
    : RowLogger(std::move(path), options.every_steps, options.append), separator_(options.separator) {
  const bool is_word = std::isalnum(static_cast<unsigned char>(separator_)) != 0;
  if (is_word || std::string_view("+-._\"\r\n").find(separator_) != std::string_view::npos)
    throw InvalidArgument("CsvLogger: columns cannot be separated by '{}'; ',', ';' or a tab can",
                          separator_);
}

std::int64_t CsvLogger::begin_file() {
  columns_.clear();
  const std::string text = file().read();
  if (text.empty()) return 0;
  columns_ = csv_fields(std::string_view(text).substr(0, text.find('\n')), separator_);
  if (columns_.front() != kEpoch)
    throw Unavailable(
        "cannot add to the log '{}': its first column is '{}', not '{}', so it is another table, or has "
        "another separator than '{}'; name another file",
        file().path(), columns_.front(), kEpoch, separator_);
  return 1;
}

void CsvLogger::append(const Logs& row) {
  const std::size_t before = columns_.size();
  if (add_columns(row)) widen(before);
  line_.clear();
  for (const std::string& column : columns_) {
    if (!line_.empty()) line_ += separator_;
    if (const double* value = row.find(column); value != nullptr)
      fmt::format_to(std::back_inserter(line_), "{}", *value);
    else
      line_ += kMissing;
  }
  line_ += '\n';
  file().append(line_);
}

bool CsvLogger::add_columns(const Logs& row) {
  const std::size_t before = columns_.size();
  for (const auto& [name, value] : row)
    if (std::ranges::find(columns_, name) == columns_.end()) columns_.push_back(name);
  return columns_.size() > before;
}

/// Gives the rows that there are the columns from `before` on.
void CsvLogger::widen(std::size_t before) {
  const std::string rows = file().read();
  std::string wider = header();
  std::string missing;
  for (std::size_t column = before; column < columns_.size(); ++column) {
    missing += separator_;
    missing += kMissing;
  }
  for (std::size_t begin = rows.find('\n') + 1; begin < rows.size();) {
    const std::size_t end = rows.find('\n', begin);
    wider.append(rows, begin, end - begin).append(missing) += '\n';
    begin = end + 1;
  }
  file().replace(wider);
}

std::string CsvLogger::header() const {
  std::string line;
  for (const std::string& column : columns_) {
    if (!line.empty()) line += separator_;
    append_csv(line, column, separator_);
  }
  return line + '\n';
}

JsonLinesLogger::JsonLinesLogger(std::string path, const JsonLinesLoggerOptions& options)
    : RowLogger(std::move(path), options.every_steps, options.append) {}

std::int64_t JsonLinesLogger::begin_file() { return 0; }

void JsonLinesLogger::append(const Logs& row) {
  line_ = "{";
  for (const auto& [name, value] : row) {
    if (line_.size() > 1) line_ += ',';
    append_quoted(line_, name, BadUtf8::kLatin1);
    line_ += ':';
    append_number(line_, value);
  }
  line_ += "}\n";
  file().append(line_);
}

TensorBoardLogger::TensorBoardLogger(std::string folder, TensorBoardLoggerOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {
  if (options_.every_steps < 0 || options_.histograms_every_epochs < 0)
    throw InvalidArgument(
        "TensorBoardLogger: every_steps {} and histograms_every_epochs {} must not be negative",
        options_.every_steps, options_.histograms_every_epochs);
}

void TensorBoardLogger::on_train_begin(const Logs& /*logs*/) {
  close();
  has_begun_ = false;
}

/// A checkpoint has been restored by then, if there is one.
void TensorBoardLogger::on_epoch_begin(int /*epoch*/, const Logs& /*logs*/) {
  if (train_) return;
  restart_.reset();
  // Epochs are never more than steps: values of epochs that are over stay.
  if (std::exchange(has_begun_, true)) restart_ = training().step() + 1;
  open(train_, "train");
  if (!options_.hyperparameters.empty()) train_->hyperparameters(options_.hyperparameters);
}

void TensorBoardLogger::open(std::optional<SummaryWriter>& writer, const char* run) {
  writer.emplace((std::filesystem::path(folder_) / run).string(), options_.writer);
  if (restart_) writer->restart(*restart_);
}

void TensorBoardLogger::on_train_batch_end(std::int64_t /*batch*/, const Logs& logs) {
  if (options_.every_steps == 0 || training().step() % options_.every_steps != 0) return;
  for (const auto& [name, value] : logs) add(*train_, "batch_", name, "", value, training().step());
}

void TensorBoardLogger::on_test_end(const Logs& logs) {
  if (!validation_) open(validation_, "validation");
  for (const auto& [name, value] : logs)
    add(*validation_, "evaluation_", name, "_vs_iterations", value, training().step());
  if (!train_) validation_->flush();  // nobody says when evaluations end
}

void TensorBoardLogger::on_epoch_end(int epoch, Logs& logs) {
  for (const auto& [name, value] : logs)
    if (!name.starts_with(kOfValidation)) add(*train_, "epoch_", name, "", value, epoch);
  if (logs.find("learning_rate") == nullptr && training().optimizer() != nullptr)
    add(*train_, "epoch_", "learning_rate", "", training().optimizer()->learning_rate(), epoch);
  for (const auto& [name, value] : logs)
    if (validation_ && name.starts_with(kOfValidation))
      add(*validation_, "epoch_", std::string_view(name).substr(kOfValidation.size()), "", value, epoch);
  if (options_.histograms_every_epochs > 0 && epoch % options_.histograms_every_epochs == 0)
    add_histograms(epoch);
  train_->flush();
  if (validation_) validation_->flush();
}

void TensorBoardLogger::add(SummaryWriter& writer, std::string_view before, std::string_view name,
                            std::string_view after, double value, std::int64_t step) {
  tag_.assign(before).append(name).append(after);
  writer.scalar(tag_, value, step);
}

/// All workers read, which some variables need.
void TensorBoardLogger::add_histograms(int epoch) {
  for (const Variable& parameter : training().parameters())
    train_->histogram(parameter.name(), parameter.read(), epoch);
}

void TensorBoardLogger::on_train_end(const Logs& /*logs*/) {
  close();
  restart_.reset();
}

void TensorBoardLogger::close() {
  if (train_) train_->close();
  if (validation_) validation_->close();
  train_.reset();
  validation_.reset();
}

void TensorBoardLogger::add_state(Checkpoint& checkpoint, const std::string& prefix) {
  checkpoint.add(
      prefix + "/tensor_board/" + std::filesystem::path(folder_).filename().string() + "/has_begun",
      has_begun_);
}

}  // namespace cohort
