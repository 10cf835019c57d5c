// The steps of a distributed dataset, whatever its elements are, as the loop of a training sees them.
#pragma once

#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/input/cardinality.h>
#include <cohort/input/pass.h>

namespace cohort::detail {

class EpochMetrics;

enum class StepKind { kTrain, kTest };

class AnyBatches {
 public:
  AnyBatches() = default;
  virtual ~AnyBatches() = default;
  AnyBatches(const AnyBatches&) = delete;
  AnyBatches& operator=(const AnyBatches&) = delete;

  /// As far as it is known without reading.
  [[nodiscard]] virtual Cardinality cardinality() const = 0;

  /// Begins a pass there. Collective, as all of the following.
  virtual void begin_at(const DatasetPosition& position) = 0;

  /// Where a pass would go on with the following step.
  [[nodiscard]] virtual DatasetPosition position() const = 0;

  /// Fetches the batches of the following step; false at the end of the pass.
  [[nodiscard]] virtual bool next() = 0;

  /// Runs the replicas' step with these batches, and adds its outcomes to the metrics.
  virtual void run(StepKind kind, EpochMetrics& metrics) = 0;

  /// Appends the predictions for these batches, in the order of the step's rows.
  virtual void predict(std::vector<Tensor>& predictions) = 0;
};

}  // namespace cohort::detail
