// A MetricSet has the results of several metrics in one collective, and resets them together: what a training
// needs once in an epoch, or once in a step.
//
//     MetricSet set({loss, accuracy});
//     for (const MetricResult& each : set.results()) print(each.name, each.value());
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/train/metrics/metric.h>

namespace cohort {

struct MetricResult {
  std::string_view name;
  std::span<const double> values;  ///< all elements of the result

  /// The only one. @throws InvalidArgument for a metric with several.
  [[nodiscard]] double value() const;
};

class MetricSet {
 public:
  /// Of one strategy, in the same order on all workers.
  /// @throws InvalidArgument for metrics of different strategies, and for two of one name.
  explicit MetricSet(std::vector<MetricHandle> metrics);
  MetricSet(std::initializer_list<MetricHandle> metrics) : MetricSet(std::vector(metrics)) {}

  [[nodiscard]] std::span<const MetricHandle> metrics() const noexcept { return metrics_; }

  /// The results over all replicas of all workers, by one all-reduce, in the order of the metrics; they are
  /// valid until the next call, which allocates nothing. All workers call it together.
  /// @throws WrongContext inside replicas, and where another strategy is active; errors of collectives.
  [[nodiscard]] std::span<const MetricResult> results();

  void reset_state() const;

 private:
  std::vector<MetricHandle> metrics_;
  Tensor sums_;                 // of all metrics, one after the other
  std::vector<double> values_;  // of all results
  std::vector<MetricResult> results_;
  std::uint64_t fingerprint_ = 0;  // of names and sizes
};

}  // namespace cohort
