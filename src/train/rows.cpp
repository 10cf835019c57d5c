#include "train/rows.h"

#include <cohort/base/error.h>

namespace cohort {
namespace {

/// The extents without a last one of 1.
std::span<const std::int64_t> without_last_one(const Shape& shape) {
  const auto extents = shape.extents();
  return !extents.empty() && extents.back() == 1 ? extents.first(extents.size() - 1) : extents;
}

}  // namespace

std::size_t values_per_weight(const Tensor& values, const Tensor& weights, std::string_view what) {
  if (weights.elements() == 1) return values.elements();
  const auto of_values = values.shape().extents();
  auto of_weights = weights.shape().extents();
  while (!of_weights.empty() && of_weights.back() == 1) of_weights = of_weights.first(of_weights.size() - 1);
  const bool leads = of_weights.size() <= of_values.size() &&
                     std::ranges::equal(of_weights, of_values.first(of_weights.size()));
  if (!leads) {
    throw InvalidArgument(
        "{}: {} has the weights {}; give one for each value, one for each row, or one for all", what,
        describe(values), describe(weights));
  }
  return weights.elements() == 0 ? 1 : values.elements() / weights.elements();
}

RowLayout row_layout(const Tensor& predictions, std::string_view what) {
  const auto extents = predictions.shape().extents();
  if (extents.empty()) {
    throw InvalidArgument("{}: the predictions are {}, a single number; give them a row for each example",
                          what, describe(predictions));
  }
  if (extents.size() == 1) return {predictions.elements(), 1};
  const auto columns = static_cast<std::size_t>(extents.back());
  if (columns == 0)
    throw InvalidArgument("{}: the predictions are {}, rows without a column", what, describe(predictions));
  std::size_t rows = 1;
  for (const std::int64_t extent : extents.first(extents.size() - 1))
    rows *= static_cast<std::size_t>(extent);
  return {rows, columns};
}

void require_floating(const Tensor& predictions, std::string_view what) {
  if (is_floating(predictions.dtype())) return;
  throw InvalidArgument("{}: the predictions are {}; give floating-point numbers", what,
                        describe(predictions));
}

void require_same_rows(const Tensor& labels, const Tensor& predictions, std::string_view what) {
  if (std::ranges::equal(without_last_one(labels.shape()), without_last_one(predictions.shape()))) return;
  throw InvalidArgument("{}: the labels are {} and the predictions {}; give both the same shape", what,
                        describe(labels), describe(predictions));
}

void require_row_labels(const Tensor& labels, const Tensor& predictions, std::string_view what) {
  const auto rows = predictions.shape().extents();
  const bool fits =
      !rows.empty() && (std::ranges::equal(labels.shape().extents(), rows.first(rows.size() - 1)) ||
                        std::ranges::equal(without_last_one(labels.shape()), rows.first(rows.size() - 1)));
  if (fits) return;
  throw InvalidArgument(
      "{}: the labels are {} and the predictions {}; give a class for each row of predictions", what,
      describe(labels), describe(predictions));
}

void throw_no_class(std::int64_t label, std::size_t classes, std::string_view what) {
  throw InvalidArgument("{}: a label is {}, but there are {} classes, from 0 to {}", what, label, classes,
                        static_cast<std::int64_t>(classes) - 1);
}

template <class T>
void RowWeights<T>::require_count(const Tensor& weights, std::size_t rows, std::string_view what) {
  if (weights.elements() == rows) return;
  throw InvalidArgument(
      "{}: there are {} rows and the weights {}; give a weight for each row, or one for all", what, rows,
      describe(weights));
}

template class RowWeights<float>;
template class RowWeights<double>;

}  // namespace cohort
