// The steps of a distributed dataset of one kind of batch.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/distributed_dataset.h>
#include <cohort/trainer/detail/any_batches.h>
#include <cohort/trainer/detail/epoch_metrics.h>
#include <cohort/trainer/step_functions.h>

namespace cohort::detail {

template <class Batch>
class DistributedBatches final : public AnyBatches {
 public:
  /// The step functions outlive it.
  DistributedBatches(DistributedDataset<Batch> dataset, Strategy strategy, const StepFunctions<Batch>& steps)
      : dataset_(std::move(dataset)), strategy_(std::move(strategy)), steps_(steps) {}

  [[nodiscard]] Cardinality cardinality() const override { return dataset_.cardinality(); }
  void begin_at(const DatasetPosition& position) override {
    batches_.reset();
    pass_.reset();  // its thread reads ahead no more
    pass_.emplace(dataset_.iterate_at(position));
  }
  [[nodiscard]] DatasetPosition position() const override { return pass_->position(); }
  [[nodiscard]] bool next() override {
    batches_ = pass_->get_next_as_optional();
    return batches_.has_value();
  }

  void run(StepKind kind, EpochMetrics& metrics) override {
    const auto& step = kind == StepKind::kTrain ? steps_.train : steps_.test;
    require(static_cast<bool>(step), kind == StepKind::kTrain ? "train" : "test");
    strategy_.run([&](ReplicaContext& replica, const Batch& mine) { metrics.add(step(replica, mine)); },
                  *batches_);
  }

  void predict(std::vector<Tensor>& predictions) override {
    require(static_cast<bool>(steps_.predict), "predict");
    const auto own = strategy_.run(
        [&](ReplicaContext& replica, const Batch& mine) { return steps_.predict(replica, mine); }, *batches_);
    // The parts of a batch go to the workers in turn, one round for each of their replicas.
    for (const Tensor& part : own.components()) predictions.push_back(strategy_.gather(part, 0));
  }

 private:
  static void require(bool is_there, const char* function) {
    if (!is_there)
      throw InvalidArgument("the Trainer was made from StepFunctions without `{}`, which this call needs",
                            function);
  }

  DistributedDataset<Batch> dataset_;
  Strategy strategy_;
  const StepFunctions<Batch>& steps_;
  std::optional<DistributedIterator<Batch>> pass_;
  std::optional<PerReplica<Batch>> batches_;
};

}  // namespace cohort::detail
