// Metrics that are means over rows: accuracies, and those of losses. What each row counts is a formula, as a
// match or an error:
//
//     static constexpr bool kOfClasses = false;    // true: labels are classes, one for each row
//     double value(const Label* labels, const T* predictions, std::size_t columns) const;

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/metrics/loss_metrics.h>
#include <cohort/train/metrics/metric.h>

#include "train/rows.h"

namespace cohort::metrics {
namespace {

/// sums: of weighted values, and of weights.
class MeanOfSums : public MetricRule {
 public:
  [[nodiscard]] std::size_t sums() const final { return 2; }
  void compute(std::span<const double> sums, std::span<double> result) const override {
    result[0] = sums[1] == 0 ? 0 : sums[0] / sums[1];
  }

 protected:
  /// Adds up `value(row)`.
  template <class T, class Value>
  static void add_rows(std::size_t rows, const RowWeights<T>& weights, std::span<double> sums, Value value) {
    double sum = 0;
    double weight = 0;
    if (weights.are_ones()) {
      for (std::size_t row = 0; row < rows; ++row) sum += value(row);
      weight = static_cast<double>(rows);
    } else {
      for (std::size_t row = 0; row < rows; ++row) {
        sum += weights[row] * value(row);
        weight += weights[row];
      }
    }
    sums[0] += sum;
    sums[1] += weight;
  }
};

template <class Formula>
class MeanOfRows final : public MeanOfSums {
 public:
  MeanOfRows(std::string name, Formula formula) : name_(std::move(name)), formula_(std::move(formula)) {}

  void update(const MetricBatch& batch, std::span<double> sums) const override {
    if (Formula::kOfClasses)
      require_row_labels(*batch.labels, batch.predictions, name_);
    else
      require_same_rows(*batch.labels, batch.predictions, name_);
    const RowLayout layout = row_layout(batch.predictions, name_);
    with_number(batch.predictions.dtype(), [&]<class T>(std::type_identity<T>) {
      using Label = std::conditional_t<Formula::kOfClasses, std::int64_t, T>;
      const RowWeights<T> weights(batch.weights, layout.rows, name_);
      const Label* const labels = elements_as<Label>(*batch.labels, Part::kLabels).data();
      const T* const predictions = elements_as<T>(batch.predictions, Part::kPredictions).data();
      const std::size_t labels_of_row = Formula::kOfClasses ? 1 : layout.columns;
      add_rows(layout.rows, weights, sums, [&](std::size_t row) -> double {
        return formula_.value(labels + row * labels_of_row, predictions + row * layout.columns,
                              layout.columns);
      });
    });
  }

 private:
  std::string name_;
  Formula formula_;
};

template <class Formula>
Metric make_mean_of_rows(const std::string& name, Formula formula) {
  return {name, std::make_shared<MeanOfRows<Formula>>(name, std::move(formula))};
}

struct Equal {
  static constexpr bool kOfClasses = false;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    return sum_of<T>(columns, [&](std::size_t i) -> T { return labels[i] == predictions[i] ? 1 : 0; }) /
           static_cast<double>(columns);
  }
};

struct OnTheSideOfTheLabel {
  static constexpr bool kOfClasses = false;
  double threshold;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    const T limit = static_cast<T>(threshold);
    return sum_of<T>(
               columns,
               [&](std::size_t i) -> T { return labels[i] == (predictions[i] > limit ? 1 : 0) ? 1 : 0; }) /
           static_cast<double>(columns);
  }
};

template <class T>
std::size_t place_of_largest(const T* row, std::size_t columns) {
  return static_cast<std::size_t>(std::max_element(row, row + columns) - row);
}

/// How many predictions are larger than that of `label`; no number is, of a NaN.
template <class T>
bool is_among_largest(const T* predictions, std::size_t columns, std::size_t label, int k) {
  const T own = predictions[label];
  if (own != own) return false;  // NOLINT(misc-redundant-expression): a NaN differs from itself
  return std::count_if(predictions, predictions + columns, [&](T each) { return each > own; }) < k;
}

struct LargestIsLabel {
  static constexpr bool kOfClasses = true;
  template <class T>
  double value(const std::int64_t* label, const T* predictions, std::size_t columns) const {
    return place_of_largest(predictions, columns) == class_of(*label, columns, "sparse_categorical_accuracy");
  }
};

struct LargestIsLargestLabel {
  static constexpr bool kOfClasses = false;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    return place_of_largest(predictions, columns) == place_of_largest(labels, columns);
  }
};

struct LabelIsAmongLargest {
  static constexpr bool kOfClasses = true;
  int k;
  template <class T>
  double value(const std::int64_t* label, const T* predictions, std::size_t columns) const {
    return is_among_largest(predictions, columns,
                            class_of(*label, columns, "sparse_top_k_categorical_accuracy"), k);
  }
};

struct LargestLabelIsAmongLargest {
  static constexpr bool kOfClasses = false;
  int k;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    return is_among_largest(predictions, columns, place_of_largest(labels, columns), k);
  }
};

int require_k(int k, const std::string& name) {
  if (k >= 1) return k;
  throw InvalidArgument("{}: k is {}; give at least 1", name, k);
}

}  // namespace

Metric accuracy(const std::string& name) { return make_mean_of_rows(name, Equal{}); }
Metric binary_accuracy(double threshold, const std::string& name) {
  return make_mean_of_rows(name, OnTheSideOfTheLabel{threshold});
}
Metric categorical_accuracy(const std::string& name) {
  return make_mean_of_rows(name, LargestIsLargestLabel{});
}
Metric sparse_categorical_accuracy(const std::string& name) {
  return make_mean_of_rows(name, LargestIsLabel{});
}
Metric top_k_categorical_accuracy(int k, const std::string& name) {
  return make_mean_of_rows(name, LargestLabelIsAmongLargest{require_k(k, name)});
}
Metric sparse_top_k_categorical_accuracy(int k, const std::string& name) {
  return make_mean_of_rows(name, LabelIsAmongLargest{require_k(k, name)});
}

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
