// Metrics are numbers that a program watches while it trains or evaluates, such as an accuracy. A metric
// keeps sums over the batches that it has seen, and `result()` says what they amount to so far.
//
//     const Metric accuracy = metrics::sparse_categorical_accuracy();   // in the strategy's scope
//     strategy.run([&](const Tensor& labels, const Tensor& logits) {
//       accuracy.update_state(labels, logits);
//     }, labels, logits);
//     const double so_far = accuracy.result().item<double>();           // over all replicas of all workers
//     accuracy.reset_state();
//
// Each local replica has sums of its own, in float64. Inside a replica a metric sees these alone: an update
// takes no lock and, after the first one, allocates nothing; its result is the replica's own. Outside
// replicas `result()` is of all replicas of all workers, who call it together; a MetricSet has the results of
// many metrics in one collective. There an update counts once, not once per replica, and all workers make it
// alike.
//
// A metric is a handle: copies denote the same one. It belongs to the strategy in whose scope it was made,
// or to that of `bind`. Checkpoint::add saves its sums.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <cohort/device/tensor.h>
#include <cohort/strategy/strategy.h>

namespace cohort {

class MetricState;

/// A batch as a metric gets it.
struct MetricBatch {
  const Tensor* labels = nullptr;  ///< null for metrics of values
  const Tensor& predictions;       ///< or the values
  const Tensor* weights = nullptr;
};

/// What a metric computes, without what it has seen: a metric of one's own implements it. All sums of a
/// metric start at 0, and those of replicas are added up before the result is computed. Any thread may call
/// it.
class MetricRule {
 public:
  MetricRule() = default;
  virtual ~MetricRule() = default;
  MetricRule(const MetricRule&) = delete;
  MetricRule& operator=(const MetricRule&) = delete;

  /// How many sums there are.
  [[nodiscard]] virtual std::size_t sums() const = 0;
  /// [] for one number.
  [[nodiscard]] virtual Shape result_shape() const { return {}; }
  /// Adds a batch to the sums. It throws before it changes any of them.
  virtual void update(const MetricBatch& batch, std::span<double> sums) const = 0;
  /// What the sums amount to, to `result`, which has the elements of `result_shape()`.
  virtual void compute(std::span<const double> sums, std::span<double> result) const = 0;
};

/// What all metrics have in common.
class MetricHandle {
 public:
  [[nodiscard]] const std::string& name() const noexcept;

  /// Forgets what was seen: the replica's own inside a replica, and that of all local replicas elsewhere.
  void reset_state() const;

  /// In float64; a scalar unless the metric says otherwise. Inside a replica its own, elsewhere that of all
  /// replicas, for which all workers call it.
  /// @throws WrongContext where another strategy is active.
  [[nodiscard]] Tensor result() const;

  /// Makes it a metric of `strategy`, with nothing seen. @throws WrongContext inside a replica.
  void bind(const Strategy& strategy) const;

  /// What a replica of this worker has summed up: what a checkpoint keeps.
  [[nodiscard]] std::span<double> sums(int local_replica) const noexcept;

  /// What all handles of this metric share. Internal.
  [[nodiscard]] const std::shared_ptr<MetricState>& state() const noexcept { return state_; }

 protected:
  MetricHandle(std::string name, std::shared_ptr<const MetricRule> rule);
  void update(const MetricBatch& batch) const;

 private:
  std::shared_ptr<MetricState> state_;
};

/// A metric that compares predictions with labels.
class Metric : public MetricHandle {
 public:
  /// @throws WrongContext inside a replica, unless it is the only one of its process.
  Metric(std::string name, std::shared_ptr<const MetricRule> rule)
      : MetricHandle(std::move(name), std::move(rule)) {}

  /// Adds a batch. Weights are numbers of examples, as it were: one for each row, or one for all.
  /// @throws InvalidArgument for shapes or labels that do not fit, naming them; WrongContext where another
  /// strategy is active.
  void update_state(const Tensor& labels, const Tensor& predictions,
                    const std::optional<Tensor>& sample_weight = {}) const {
    update({.labels = &labels,
            .predictions = predictions,
            .weights = sample_weight ? &*sample_weight : nullptr});
  }
};

}  // namespace cohort
