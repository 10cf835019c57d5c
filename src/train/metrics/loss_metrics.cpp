#include <cohort/train/metrics/loss_metrics.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/train/losses/regression_losses.h>

#include "train/metrics/mean_of_rows.h"

namespace cohort::metrics {
namespace {

/// A CPU tensor of `rows` elements, which this thread keeps for the next batch.
template <class T>
Tensor kept_losses(std::size_t rows) {
  thread_local Tensor kept = Tensor::uninitialized({0}, kDTypeOf<T>);
  if (kept.elements() < rows) kept = Tensor::uninitialized({static_cast<std::int64_t>(rows)}, kDTypeOf<T>);
  return kept.rows(0, static_cast<std::int64_t>(rows));
}

class MeanOfLoss final : public MeanOfSums {
 public:
  explicit MeanOfLoss(Loss loss, double factor = 1) : loss_(std::move(loss)), factor_(factor) {}

  void update(const MetricBatch& batch, std::span<double> sums) const override {
    require_floating(batch.predictions, loss_.name());
    const RowLayout layout = row_layout(batch.predictions, loss_.name());
    with_precision(batch.predictions.dtype(), [&]<class T>(std::type_identity<T>) {
      const Tensor losses = kept_losses<T>(layout.rows);
      loss_.rule().values(*batch.labels, batch.predictions, losses);
      const RowWeights<T> weights(batch.weights, layout.rows, loss_.name());
      const T* const values = losses.span<T>().data();
      add_rows(layout.rows, weights, sums, [&](std::size_t row) { return factor_ * values[row]; });
    });
  }

 private:
  Loss loss_;
  double factor_;
};

struct RelativeError {
  static constexpr bool kOfClasses = false;
  double normalizer;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    if (normalizer == 0) return 0;
    const T sum = sum_of<T>(columns, [&](std::size_t i) { return std::abs(predictions[i] - labels[i]); });
    return sum / normalizer / static_cast<double>(columns);
  }
};

/// The square root of the mean that another rule computes.
class RootOfMean final : public MetricRule {
 public:
  explicit RootOfMean(Loss loss) : mean_(std::move(loss)) {}
  [[nodiscard]] std::size_t sums() const override { return mean_.sums(); }
  void update(const MetricBatch& batch, std::span<double> sums) const override { mean_.update(batch, sums); }
  void compute(std::span<const double> sums, std::span<double> result) const override {
    mean_.compute(sums, result);
    result[0] = std::sqrt(result[0]);
  }

 private:
  MeanOfLoss mean_;
};

/// Adds, and keeps what rounding loses [Knuth, The Art of Computer Programming 2, 4.2.2].
void add_exactly(double& sum, double& lost, double value) {
  const double before = sum;
  sum += value;
  const double added = sum - before;
  lost += (before - (sum - added)) + (value - added);
}

/// Of each column the sums of label, label^2, both with what their rounding has lost, and error^2; and last
/// the sum of the weights.
class R2Score final : public MetricRule {
 public:
  R2Score(std::size_t outputs, std::string name) : outputs_(outputs), name_(std::move(name)) {}

  [[nodiscard]] std::size_t sums() const override { return kSums * outputs_ + 1; }

  void update(const MetricBatch& batch, std::span<double> sums) const override {
    require_same_rows(*batch.labels, batch.predictions, name_);
    const RowLayout layout = row_layout(batch.predictions, name_);
    if (layout.columns != outputs_) {
      throw InvalidArgument("{}: it was made for {} outputs, and the predictions are {}", name_, outputs_,
                            describe(batch.predictions));
    }
    const RowWeights<double> weights(batch.weights, layout.rows, name_);
    const auto labels = elements_as<double>(*batch.labels, Part::kLabels);
    const auto predictions = elements_as<double>(batch.predictions, Part::kPredictions);
    for (std::size_t row = 0, i = 0; row < layout.rows; ++row) {
      const double weight = weights[row];
      for (std::size_t column = 0; column < outputs_; ++column, ++i) {
        const double error = labels[i] - predictions[i];
        const std::span<double> own = sums.subspan(kSums * column, kSums);
        add_exactly(own[0], own[1], weight * labels[i]);
        add_exactly(own[2], own[3], weight * labels[i] * labels[i]);
        own[4] += weight * error * error;
      }
      sums.back() += weight;
    }
  }

  void compute(std::span<const double> sums, std::span<double> result) const override {
    result[0] = 0;
    for (std::size_t column = 0; column < outputs_; ++column) {
      const std::span<const double> own = sums.subspan(kSums * column, kSums);
      const double sum = own[0] + own[1];
      const double squares = own[2] + own[3];
      const double total = (own[2] - sum * sum / sums.back()) + own[3];
      // What is left of constant labels is rounding, of either sign.
      constexpr double kRounding = 8 * std::numeric_limits<double>::epsilon();
      const bool is_constant = sums.back() > 0 && total <= kRounding * squares;
      if (is_constant) {
        std::call_once(warned_, [&] {
          logging::warning(
              "{}: the labels are constant: there is no spread to explain, and the result is NaN", name_);
        });
      }
      const double score =
          is_constant || sums.back() == 0 ? std::numeric_limits<double>::quiet_NaN() : 1 - own[4] / total;
      result[0] += score / static_cast<double>(outputs_);
    }
  }

 private:
  static constexpr std::size_t kSums = 5;

  std::size_t outputs_;
  std::string name_;
  mutable std::once_flag warned_;
};

}  // namespace

Metric mean_of(const Loss& loss) { return mean_of(loss, loss.name()); }
Metric mean_of(const Loss& loss, const std::string& name) {
  return {name, std::make_shared<MeanOfLoss>(loss)};
}

Metric root_mean_squared_error(const std::string& name) {
  return {name, std::make_shared<RootOfMean>(losses::mean_squared_error())};
}

Metric mean_relative_error(double normalizer, const std::string& name) {
  return make_mean_of_rows(name, RelativeError{normalizer});
}

Metric cosine_similarity(const std::string& name) {
  return {name, std::make_shared<MeanOfLoss>(losses::cosine_similarity(), -1)};
}

Metric r2_score(int outputs, const std::string& name) {
  if (outputs < 1) throw InvalidArgument("{}: {} outputs; give at least 1", name, outputs);
  return {name, std::make_shared<R2Score>(static_cast<std::size_t>(outputs), name)};
}

}  // namespace cohort::metrics
