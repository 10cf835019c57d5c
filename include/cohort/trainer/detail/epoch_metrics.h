// The loss and the metrics since an epoch began: each replica adds up its own examples, and one collective
// adds up those of all replicas when somebody asks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <cohort/train/losses/loss_reduction.h>
#include <cohort/train/metrics/metric.h>
#include <cohort/train/metrics/metric_set.h>
#include <cohort/trainer/logs.h>
#include <cohort/trainer/step_outcome.h>

namespace cohort::detail {

/// Which metrics a Trainer has, and what its loss is.
struct MetricPlan {
  std::vector<Metric> metrics = {};
  std::vector<Metric> weighted_metrics = {};
  std::vector<MetricHandle> step_metrics = {};
  LossReduction reduction = LossReduction::kSumOverBatchSize;
};

class EpochMetrics {
 public:
  /// @throws InvalidArgument for metrics of one name, and those that are not one number.
  EpochMetrics(const Strategy& strategy, const MetricPlan& plan);

  /// In a replica. @throws InvalidArgument for losses that are not those of examples.
  void add(const StepOutcome& outcome);

  void reset() const { set_.reset_state(); }

  /// Sets the results over all replicas of all workers. Collective.
  void set_logs(Logs& logs);

  [[nodiscard]] std::span<const MetricHandle> handles() const noexcept { return set_.metrics(); }

 private:
  MetricPlan plan_;
  MetricHandle loss_;
  MetricSet set_;
};

/// How many examples the losses count for in the mean of the batch: their number, or the sum of their
/// weights. Of a sum there is no mean: each step counts once, over all replicas.
[[nodiscard]] double examples_of(const StepOutcome& outcome, LossReduction reduction);

}  // namespace cohort::detail
