#include <cohort/trainer/callbacks/tensor_board_logger.h>

#include <filesystem>
#include <utility>

namespace cohort {
namespace {

constexpr std::string_view kOfValidation = "val_";

}  // namespace

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
