// What the tests of datasets share: elements, and what came out of a dataset as numbers.
#pragma once

#include <numeric>
#include <vector>

#include <cohort/input/dataset.h>

namespace cohort::testing {

struct Example {
  Tensor image;
  Tensor label;
};
COHORT_FIELDS(Example, image, label)

/// 0 to rows-1.
inline Tensor range(std::int64_t rows) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from(std::span<const std::int64_t>(values), {rows});
}

/// One scalar per element: 0, 1, ..., rows-1.
inline Dataset<Tensor> range_dataset(std::int64_t rows) { return Dataset<Tensor>::from_tensors(range(rows)); }

inline std::vector<std::int64_t> elements_of(const Tensor& tensor) {
  const auto values = tensor.span<std::int64_t>();
  return {values.begin(), values.end()};
}

using Rows = std::vector<std::int64_t>;
using Steps = std::vector<Rows>;

/// One pass: the rows of each element.
inline Steps steps_of(const Dataset<Tensor>& dataset) {
  Steps steps;
  for (const Tensor& batch : dataset) steps.push_back(elements_of(batch));
  return steps;
}

/// One pass over scalars, or over batches, one after the other.
inline Rows pass_of(const Dataset<Tensor>& dataset) {
  Rows rows;
  for (const Tensor& element : dataset) {
    const auto values = elements_of(element);
    rows.insert(rows.end(), values.begin(), values.end());
  }
  return rows;
}

}  // namespace cohort::testing
