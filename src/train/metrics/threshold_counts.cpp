#include "train/metrics/threshold_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <cohort/base/error.h>

#include "train/rows.h"

namespace cohort::metrics {
namespace {

template <class T>
T sigmoid(T logit) {
  const T small = std::exp(-std::abs(logit));
  return (logit < 0 ? small : 1) / (1 + small);
}

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

}  // namespace

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

}  // namespace cohort::metrics
