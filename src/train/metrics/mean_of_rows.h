// A metric that is the mean over rows of what a formula makes of each of them, as a match or an error:
//
//     static constexpr bool kOfClasses = false;    // true: labels are classes, one for each row
//     double value(const Label* labels, const T* predictions, std::size_t columns) const;
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cohort/train/metrics/metric.h>

#include "train/rows.h"

namespace cohort {

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
[[nodiscard]] Metric make_mean_of_rows(const std::string& name, Formula formula) {
  return {name, std::make_shared<MeanOfRows<Formula>>(name, std::move(formula))};
}

}  // namespace cohort
