#include <cohort/train/metrics/binary_metrics.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/train/metrics/metric.h>

#include "train/rows.h"

namespace cohort::metrics {
namespace {

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

/// What all metrics of thresholds keep: of the labels 1 and of the labels 0 the weights between each two
/// thresholds. A prediction is counted at one place, however many thresholds there are.
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

/// Marks the k largest of a row, the first of equal ones.
template <class T>
std::span<const char> mark_largest(const T* row, std::size_t columns, int k) {
  const std::span<char> marks = kept_memory<char>(Part::kResult, columns);
  const std::size_t count = std::min(static_cast<std::size_t>(k), columns);
  const std::span<std::size_t> order = kept_memory<std::size_t>(Part::kResult, columns);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::nth_element(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count) - 1, order.end(),
      [&](std::size_t a, std::size_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
  std::ranges::fill(marks, char{0});
  for (const std::size_t column : order.first(count)) marks[column] = 1;
  return marks;
}

template <class T>
void require_labels(std::span<const T> labels, const std::string& name) {
  const auto wrong = std::ranges::find_if(labels, [](T label) { return label != 0 && label != 1; });
  if (wrong != labels.end())
    throw InvalidArgument("{}: a label is {}; give 0 and 1", name, static_cast<double>(*wrong));
}

/// Weights of elements: one for each, one for each row, or one for all.
std::size_t elements_per_weight(const MetricBatch& batch, const RowLayout& layout, const std::string& name) {
  const std::size_t weights = batch.weights->elements();
  if (weights == layout.rows) return layout.columns;
  if (weights == batch.predictions.elements()) return 1;
  if (weights == 1) return batch.predictions.elements();
  throw InvalidArgument(
      "{}: the predictions are {} and the weights {}; give one for each, for each row, or for all", name,
      describe(batch.predictions), describe(*batch.weights));
}

ThresholdCounts::ThresholdCounts(ThresholdCountsOptions options, std::string name)
    : options_(std::move(options)),
      narrow_(options_.thresholds.begin(), options_.thresholds.end()),
      name_(std::move(name)) {
  if (options_.top_k && *options_.top_k < 1)
    throw InvalidArgument("{}: top_k is {}; give at least 1", name_, *options_.top_k);
}

template <class T>
std::span<const T> ThresholdCounts::thresholds_as() const {
  if constexpr (std::is_same_v<T, float>)
    return narrow_;
  else
    return options_.thresholds;
}

/// How many thresholds the prediction is above: 0 for NaN.
template <class T>
std::size_t ThresholdCounts::place_of(T prediction) const {
  const std::span<const T> thresholds = thresholds_as<T>();
  if (!options_.evenly)
    return static_cast<std::size_t>(std::ranges::lower_bound(thresholds, prediction) - thresholds.begin());
  // The place, or the one below: a number of at most i / (thresholds - 1) gives at most i.
  auto place = static_cast<std::size_t>(prediction * static_cast<T>(thresholds.size() - 1));
  while (place < thresholds.size() && prediction > thresholds[place]) ++place;
  return place;
}

void ThresholdCounts::require_columns(const Tensor& predictions, std::size_t columns) const {
  if (options_.class_id) static_cast<void>(class_of(*options_.class_id, columns, name_));
  if (options_.labels == 1 || options_.labels == columns) return;
  throw InvalidArgument("{}: it was made for {} labels, and the predictions are {}", name_, options_.labels,
                        describe(predictions));
}

template <class T>
void ThresholdCounts::require_in_range(std::span<const T> predictions) const {
  if (!options_.evenly || options_.from_logits) return;
  const auto wrong = std::ranges::find_if(predictions, [](T each) { return !(each >= 0 && each <= 1); });
  if (wrong == predictions.end()) return;
  throw InvalidArgument("{}: a prediction is {}; give 0 to 1, or logits with from_logits", name_,
                        static_cast<double>(*wrong));
}

template <class T>
void ThresholdCounts::update_as(const MetricBatch& batch, std::span<double> sums) const {
  const RowLayout layout = row_layout(batch.predictions, name_);
  require_columns(batch.predictions, layout.columns);
  const auto labels = elements_as<T>(*batch.labels, Part::kLabels);
  const auto predictions = elements_as<T>(batch.predictions, Part::kPredictions);
  require_labels(labels, name_);
  require_in_range(predictions);
  const std::size_t together = batch.weights == nullptr ? 1 : elements_per_weight(batch, layout, name_);
  const auto weights =
      batch.weights == nullptr ? std::span<const T>() : elements_as<T>(*batch.weights, Part::kWeights);
  for (std::size_t row = 0, i = 0; row < layout.rows; ++row) {
    std::span<const char> marks;
    if (options_.top_k) marks = mark_largest(predictions.data() + i, layout.columns, *options_.top_k);
    for (std::size_t column = 0; column < layout.columns; ++column, ++i) {
      if (options_.class_id && column != static_cast<std::size_t>(*options_.class_id)) continue;
      const bool is_out = !marks.empty() && marks[column] == 0;
      const T prediction = options_.from_logits ? sigmoid(predictions[i]) : predictions[i];
      const std::size_t place = is_out ? 0 : place_of(prediction);
      const std::size_t label = options_.labels > 1 ? column : 0;
      const std::size_t list = 2 * label + (labels[i] == 0 ? 1 : 0);
      sums[list * places() + place] += weights.empty() ? 1 : static_cast<double>(weights[i / together]);
    }
  }
}

void ThresholdCounts::update(const MetricBatch& batch, std::span<double> sums) const {
  require_same_rows(*batch.labels, batch.predictions, name_);
  with_number(batch.predictions.dtype(), [&]<class T>(std::type_identity<T>) { update_as<T>(batch, sums); });
}

/// 0 where there is nothing.
double share(double part, double rest) { return part == 0 ? 0 : part / (part + rest); }

double precision_of(const Answers& a) { return share(a.true_positives, a.false_positives); }
double recall_of(const Answers& a) { return share(a.true_positives, a.false_negatives); }
double specificity_of(const Answers& a) { return share(a.true_negatives, a.false_positives); }
double fall_out_of(const Answers& a) { return share(a.false_positives, a.true_negatives); }

using Rate = double (*)(const Answers&);

class ThresholdMetric : public MetricRule {
 public:
  explicit ThresholdMetric(ThresholdCounts counts) : counts_(std::move(counts)) {}

  [[nodiscard]] std::size_t sums() const final { return counts_.sums(); }
  void update(const MetricBatch& batch, std::span<double> sums) const final { counts_.update(batch, sums); }

 protected:
  const ThresholdCounts counts_;
};

/// Thresholds as they were given, which may be in any order.
class RateAtThresholds final : public ThresholdMetric {
 public:
  RateAtThresholds(ThresholdCounts counts, std::vector<std::size_t> places, Rate rate)
      : ThresholdMetric(std::move(counts)), places_(std::move(places)), rate_(rate) {}

  [[nodiscard]] Shape result_shape() const override {
    return places_.size() == 1 ? Shape{} : Shape{static_cast<std::int64_t>(places_.size())};
  }
  void compute(std::span<const double> sums, std::span<double> result) const override {
    counts_.for_each(sums, 0, [&](std::size_t threshold, const Answers& answers) {
      result[places_[threshold]] = rate_(answers);
    });
  }

 private:
  std::vector<std::size_t> places_;  // of each threshold in the result
  Rate rate_;
};

/// The largest `rate` where `condition` is at least `least`.
class RateAtRate final : public ThresholdMetric {
 public:
  RateAtRate(ThresholdCounts counts, Rate rate, Rate condition, double least)
      : ThresholdMetric(std::move(counts)), rate_(rate), condition_(condition), least_(least) {}

  void compute(std::span<const double> sums, std::span<double> result) const override {
    result[0] = 0;
    counts_.for_each(sums, 0, [&](std::size_t, const Answers& answers) {
      if (condition_(answers) >= least_) result[0] = std::max(result[0], rate_(answers));
    });
  }

 private:
  Rate rate_;
  Rate condition_;
  double least_;
};

class AreaUnderCurve final : public ThresholdMetric {
 public:
  AreaUnderCurve(ThresholdCounts counts, Curve curve, Summation summation, std::string name)
      : ThresholdMetric(std::move(counts)), curve_(curve), summation_(summation), name_(std::move(name)) {}

  void compute(std::span<const double> sums, std::span<double> result) const override {
    result[0] = 0;
    for (std::size_t label = 0; label < counts_.labels(); ++label)
      result[0] += area(sums, label) / static_cast<double>(counts_.labels());
  }

 private:
  /// Between neighbouring thresholds, of which `high` says yes less often.
  [[nodiscard]] double area(std::span<const double> sums, std::size_t label) const {
    double area = 0;
    std::optional<Answers> high;
    counts_.for_each(sums, label, [&](std::size_t, const Answers& low) {
      if (high) area += is_interpolated_pr() ? interpolated_pr(low, *high) : strip(low, *high);
      high = low;
    });
    if (high) warn_of_one_class(*high);
    return area;
  }

  void warn_of_one_class(const Answers& any) const {
    const double positives = any.true_positives + any.false_negatives;
    const double negatives = any.false_positives + any.true_negatives;
    if (positives + negatives == 0 || (positives > 0 && negatives > 0)) return;
    if (positives > 0 && curve_ == Curve::kPr) return;  // there is a curve
    std::call_once(warned_, [&] {
      logging::warning("{}: all labels are {}: there is no curve, and the area is 0", name_,
                       positives > 0 ? "positive" : "negative");
    });
  }

  [[nodiscard]] bool is_interpolated_pr() const {
    return curve_ == Curve::kPr && summation_ == Summation::kInterpolation;
  }

  [[nodiscard]] double strip(const Answers& low, const Answers& high) const {
    const bool roc = curve_ == Curve::kRoc;
    const Rate x = roc ? fall_out_of : recall_of;
    const Rate y = roc ? recall_of : precision_of;
    const double width = x(low) - x(high);
    if (summation_ == Summation::kMinoring) return width * std::min(y(low), y(high));
    if (summation_ == Summation::kMajoring) return width * std::max(y(low), y(high));
    return width * (y(low) + y(high)) / 2;
  }

  // Between two thresholds true positives grow in proportion to all positives, so that the precision is
  // (slope * positives + intercept) / positives: its integral over the recall has a logarithm.
  static double interpolated_pr(const Answers& low, const Answers& high) {
    const double positives_low = low.true_positives + low.false_positives;
    const double positives_high = high.true_positives + high.false_positives;
    const double growth = low.true_positives - high.true_positives;
    if (positives_low <= positives_high) return 0;
    const double slope = growth / (positives_low - positives_high);
    const double intercept = high.true_positives - slope * positives_high;
    const double ratio = positives_high > 0 ? positives_low / positives_high : 1;
    const double all = high.true_positives + high.false_negatives;
    return all == 0 ? 0 : slope * (growth + intercept * std::log(ratio)) / all;
  }

  Curve curve_;
  Summation summation_;
  std::string name_;
  mutable std::once_flag warned_;
};

Metric rate_at_thresholds(const ThresholdOptions& options, const std::string& name, Rate rate) {
  std::vector<double> thresholds = options.thresholds;
  if (thresholds.empty())
    thresholds.push_back(options.top_k ? -std::numeric_limits<double>::infinity() : 0.5);
  if (std::ranges::any_of(thresholds, [](double each) { return std::isnan(each); }))
    throw InvalidArgument("{}: a threshold is not a number", name);
  std::vector<std::size_t> places(thresholds.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::ranges::stable_sort(places, {}, [&](std::size_t place) { return thresholds[place]; });
  std::ranges::sort(thresholds);
  ThresholdCounts counts({.thresholds = thresholds, .top_k = options.top_k, .class_id = options.class_id},
                         name);
  return {name, std::make_shared<RateAtThresholds>(std::move(counts), std::move(places), rate)};
}

// Beyond 0 and 1, so that a prediction of 0 is above the first and one of 1 below the last.
constexpr double kBeyond = 1e-7;

std::vector<double> even_thresholds(int count, const std::string& name) {
  if (count < 2) throw InvalidArgument("{}: {} thresholds; give at least 2", name, count);
  std::vector<double> thresholds{-kBeyond};
  for (int i = 1; i < count - 1; ++i) thresholds.push_back(static_cast<double>(i) / (count - 1));
  thresholds.push_back(1 + kBeyond);
  return thresholds;
}

Metric rate_at_rate(const std::string& name, double least, int thresholds, Rate rate, Rate condition) {
  if (!(least >= 0 && least <= 1))
    throw InvalidArgument("{}: the least rate is {}; give 0 to 1", name, least);
  ThresholdCounts counts({.thresholds = even_thresholds(thresholds, name), .evenly = true}, name);
  return {name, std::make_shared<RateAtRate>(std::move(counts), rate, condition, least)};
}

std::vector<double> thresholds_between(const std::vector<double>& given, const std::string& name) {
  const auto is_outside = [](double each) { return !(each > 0 && each < 1); };
  if (std::ranges::any_of(given, is_outside))
    throw InvalidArgument("{}: thresholds lie between 0 and 1; those beyond are added", name);
  std::vector<double> thresholds{-kBeyond};
  thresholds.insert(thresholds.end(), given.begin(), given.end());
  thresholds.push_back(1 + kBeyond);
  std::ranges::sort(thresholds);
  return thresholds;
}

}  // namespace

Metric precision(const ThresholdOptions& options, const std::string& name) {
  return rate_at_thresholds(options, name, precision_of);
}
Metric recall(const ThresholdOptions& options, const std::string& name) {
  return rate_at_thresholds(options, name, recall_of);
}
Metric true_positives(const ThresholdOptions& options, const std::string& name) {
  return rate_at_thresholds(options, name, [](const Answers& answers) { return answers.true_positives; });
}
Metric false_positives(const ThresholdOptions& options, const std::string& name) {
  return rate_at_thresholds(options, name, [](const Answers& answers) { return answers.false_positives; });
}
Metric true_negatives(const ThresholdOptions& options, const std::string& name) {
  return rate_at_thresholds(options, name, [](const Answers& answers) { return answers.true_negatives; });
}
Metric false_negatives(const ThresholdOptions& options, const std::string& name) {
  return rate_at_thresholds(options, name, [](const Answers& answers) { return answers.false_negatives; });
}

Metric sensitivity_at_specificity(double least, int thresholds, const std::string& name) {
  return rate_at_rate(name, least, thresholds, recall_of, specificity_of);
}
Metric specificity_at_sensitivity(double least, int thresholds, const std::string& name) {
  return rate_at_rate(name, least, thresholds, specificity_of, recall_of);
}
Metric precision_at_recall(double least, int thresholds, const std::string& name) {
  return rate_at_rate(name, least, thresholds, precision_of, recall_of);
}
Metric recall_at_precision(double least, int thresholds, const std::string& name) {
  return rate_at_rate(name, least, thresholds, recall_of, precision_of);
}

Metric auc(const AucOptions& options, const std::string& name) {
  if (options.labels < 1) throw InvalidArgument("{}: {} labels; give at least 1", name, options.labels);
  const bool evenly = options.thresholds.empty();
  ThresholdCounts counts({.thresholds = evenly ? even_thresholds(options.num_thresholds, name)
                                               : thresholds_between(options.thresholds, name),
                          .evenly = evenly,
                          .from_logits = options.from_logits,
                          .labels = static_cast<std::size_t>(options.labels)},
                         name);
  return {name, std::make_shared<AreaUnderCurve>(std::move(counts), options.curve, options.summation, name)};
}

}  // namespace cohort::metrics
