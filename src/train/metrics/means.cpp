#include <cohort/train/metrics/means.h>

#include <utility>

#include <cohort/base/error.h>

#include "train/metrics/metric_state.h"
#include "train/rows.h"

namespace cohort {
namespace {

struct Weighted {
  double sum = 0;
  double weight = 0;
};

Weighted weighted_sum(const MetricBatch& batch, std::string_view what) {
  return with_number(batch.predictions.dtype(), [&]<class T>(std::type_identity<T>) -> Weighted {
    const auto values = elements_as<T>(batch.predictions, Part::kPredictions);
    if (batch.weights == nullptr) {
      const auto each = [&](std::size_t i) { return static_cast<double>(values[i]); };
      return {sum_of<double>(values.size(), each), static_cast<double>(values.size())};
    }
    const std::size_t together = values_per_weight(batch.predictions, *batch.weights, what);
    const auto weights = elements_as<T>(*batch.weights, Part::kWeights);
    Weighted result;
    for (std::size_t i = 0, begin = 0; begin < values.size(); ++i, begin += together) {
      const double weight = weights[i];
      const auto each = [&](std::size_t k) { return static_cast<double>(values[begin + k]); };
      result.sum += weight * sum_of<double>(together, each);
      result.weight += weight * static_cast<double>(together);
    }
    return result;
  });
}

class MeanRule final : public MetricRule {
 public:
  [[nodiscard]] std::size_t sums() const override { return 2; }
  void update(const MetricBatch& batch, std::span<double> sums) const override {
    const Weighted added = weighted_sum(batch, "Mean");
    sums[0] += added.sum;
    sums[1] += added.weight;
  }
  void compute(std::span<const double> sums, std::span<double> result) const override {
    result[0] = sums[1] == 0 ? 0 : sums[0] / sums[1];
  }
};

class SumRule final : public MetricRule {
 public:
  [[nodiscard]] std::size_t sums() const override { return 1; }
  void update(const MetricBatch& batch, std::span<double> sums) const override {
    sums[0] += weighted_sum(batch, "Sum").sum;
  }
  void compute(std::span<const double> sums, std::span<double> result) const override { result[0] = sums[0]; }
};

/// Sums of all elements, then their weights.
class MeanTensorRule final : public MetricRule {
 public:
  explicit MeanTensorRule(const Shape& shape) : shape_(shape) {}
  [[nodiscard]] std::size_t sums() const override { return 2 * shape_.elements(); }
  [[nodiscard]] Shape result_shape() const override { return shape_; }

  void update(const MetricBatch& batch, std::span<double> sums) const override {
    require_fit(batch);
    const auto values = elements_as<double>(batch.predictions, Part::kPredictions);
    const auto weights = batch.weights == nullptr ? std::span<const double>()
                                                  : elements_as<double>(*batch.weights, Part::kWeights);
    const std::size_t count = values.size();
    for (std::size_t i = 0; i < count; ++i) {
      const double weight = weights.empty() ? 1 : weights[weights.size() == 1 ? 0 : i];
      sums[i] += weight * values[i];
      sums[count + i] += weight;
    }
  }
  void compute(std::span<const double> sums, std::span<double> result) const override {
    for (std::size_t i = 0; i < result.size(); ++i) {
      const double weight = sums[result.size() + i];
      result[i] = weight == 0 ? 0 : sums[i] / weight;
    }
  }

 private:
  void require_fit(const MetricBatch& batch) const {
    if (batch.predictions.shape() != shape_) {
      throw InvalidArgument("MeanTensor: it was made for the shape {} and is given {}", to_string(shape_),
                            describe(batch.predictions));
    }
    if (batch.weights == nullptr || batch.weights->elements() == 1 || batch.weights->shape() == shape_)
      return;
    throw InvalidArgument("MeanTensor: {} has the weights {}; give one for each element, or one for all",
                          describe(batch.predictions), describe(*batch.weights));
  }

  Shape shape_;
};

}  // namespace

Mean::Mean(std::string name) : MetricHandle(std::move(name), std::make_shared<MeanRule>()) {}

void Mean::update_state(double value, double weight) const {
  state()->change([&](std::span<double> sums) {
    sums[0] += weight * value;
    sums[1] += weight;
  });
}

Sum::Sum(std::string name) : MetricHandle(std::move(name), std::make_shared<SumRule>()) {}

MeanTensor::MeanTensor(const Shape& shape, std::string name)
    : MetricHandle(std::move(name), std::make_shared<MeanTensorRule>(shape)) {}

}  // namespace cohort
