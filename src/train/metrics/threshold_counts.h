// What all metrics of thresholds keep: of the labels 1 and of the labels 0 the weights between each two
// thresholds. A prediction is counted at one place, however many thresholds there are.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/train/metrics/metric.h>

namespace cohort::metrics {

struct ThresholdCountsOptions {
  std::vector<double> thresholds = {};
  bool evenly = false;       ///< from 0 to 1; predictions must lie there
  bool from_logits = false;  ///< their sigmoid is counted
  std::optional<int> top_k = {};
  std::optional<int> class_id = {};
  std::size_t labels = 1;  ///< columns that are counted apart; 1: all together
};

/// How the answers at one threshold were.
struct Answers {
  double true_positives = 0;
  double false_positives = 0;
  double true_negatives = 0;
  double false_negatives = 0;
};

class ThresholdCounts {
 public:
  /// @throws InvalidArgument for a k below 1.
  ThresholdCounts(ThresholdCountsOptions options, std::string name);

  [[nodiscard]] std::size_t thresholds() const noexcept { return options_.thresholds.size(); }
  [[nodiscard]] std::size_t labels() const noexcept { return options_.labels; }
  [[nodiscard]] std::size_t sums() const noexcept { return options_.labels * 2 * places(); }

  /// @throws InvalidArgument for labels, predictions and weights that do not fit.
  void update(const MetricBatch& batch, std::span<double> sums) const;

  /// Calls `visit(threshold, answers)` for each threshold of a label, from the highest to the lowest.
  template <class Visit>
  void for_each(std::span<const double> sums, std::size_t label, Visit visit) const {
    const auto ones = sums.subspan(2 * label * places(), places());
    const auto zeros = sums.subspan((2 * label + 1) * places(), places());
    Answers answers;
    for (std::size_t place = 0; place < places(); ++place) {
      answers.false_negatives += ones[place];
      answers.true_negatives += zeros[place];
    }
    for (std::size_t threshold = thresholds(); threshold-- > 0;) {
      answers.true_positives += ones[threshold + 1];
      answers.false_negatives -= ones[threshold + 1];
      answers.false_positives += zeros[threshold + 1];
      answers.true_negatives -= zeros[threshold + 1];
      visit(threshold, answers);
    }
  }

 private:
  /// Below all thresholds, between them, and above them.
  [[nodiscard]] std::size_t places() const noexcept { return thresholds() + 1; }

  void require_columns(const Tensor& predictions, std::size_t columns) const;
  template <class T>
  void require_in_range(std::span<const T> predictions) const;
  template <class T>
  void update_as(const MetricBatch& batch, std::span<double> sums) const;
  template <class T>
  [[nodiscard]] std::size_t place_of(T prediction) const;
  template <class T>
  [[nodiscard]] std::span<const T> thresholds_as() const;

  ThresholdCountsOptions options_;  // thresholds in ascending order
  std::vector<float> narrow_;       // the thresholds in single precision
  std::string name_;
};

}  // namespace cohort::metrics
