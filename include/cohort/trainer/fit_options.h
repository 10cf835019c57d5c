// What `fit` of a Trainer takes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <cohort/input/dataset.h>
#include <cohort/input/distributed_dataset.h>
#include <cohort/trainer/evaluate_options.h>
#include <cohort/trainer/fit_checkpoint.h>

namespace cohort {

/// Batches of the size of the whole step: a Dataset, which the Trainer distributes, or one that the program
/// has distributed already.
template <class Batch>
class TrainingData {
 public:
  TrainingData(Dataset<Batch> dataset) : data_(std::move(dataset)) {}             // NOLINT(*-explicit-*)
  TrainingData(DistributedDataset<Batch> dataset) : data_(std::move(dataset)) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] DistributedDataset<Batch> distributed(const Strategy& strategy,
                                                      const DistributeOptions& options) const {
    if (const auto* dataset = std::get_if<Dataset<Batch>>(&data_))
      return strategy.distribute_dataset(*dataset, options);
    return std::get<DistributedDataset<Batch>>(data_);
  }

 private:
  std::variant<Dataset<Batch>, DistributedDataset<Batch>> data_;
};

template <class Batch>
struct FitOptions {
  int epochs = 1;         ///< the number of the last epoch, plus one
  int initial_epoch = 0;  ///< as if the epochs before had been trained already

  /// An epoch has so many steps, and the next one goes on where it ended, in the same pass over the dataset
  /// or in a new one if that has ended. Unset: an epoch is a pass, and its number is the pass's.
  std::optional<std::int64_t> steps_per_epoch = {};

  /// Ends, in mid-epoch if need be, when the training has had so many steps, as Training::step() counts them.
  /// Where there are checkpoints, the next fit goes on from there.
  std::optional<std::int64_t> max_steps = {};

  /// Evaluated after each epoch, or each `validation_freq`-th, or those of `validation_epochs` (from 1); in
  /// the logs as `val_loss` and so on.
  std::optional<TrainingData<Batch>> validation_data = {};
  std::optional<std::int64_t> validation_steps = {};  ///< of them at most; unset: all
  int validation_freq = 1;
  std::vector<int> validation_epochs = {};

  CallbackList callbacks = {};

  /// The weights of the examples of these classes, which labels name; others have 1. Not for examples that
  /// have weights already.
  std::map<std::int64_t, double> class_weight = {};

  FitCheckpoint checkpoint = {};
};

}  // namespace cohort
