// One pass over a dataset. Transformations implement it over the iterator of what they
// transform; programs use range-for on Dataset instead.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <cohort/input/split.h>
#include <cohort/value/structure.h>

namespace cohort {

/// Which rows of a batch of so many rows are wanted, part by part.
using SplitRule = std::function<std::vector<RowRange>(std::int64_t rows)>;

/// The number of rows that all tensors of a batch share.
/// @throws InvalidArgument when a tensor has no rows to count, or when they differ.
template <class Batch>
[[nodiscard]] std::int64_t rows_of(const Batch& batch) {
  std::optional<std::int64_t> rows;
  for_each_leaf(
      [&](const Tensor& tensor) {
        if (tensor.shape().rank() == 0) {
          throw InvalidArgument(
              "the dataset's elements have no batch axis (found {}); add batch() before distributing it",
              describe(tensor));
        }
        if (rows && *rows != tensor.shape()[0]) {
          throw InvalidArgument("the tensors of one element differ in rows: {} and {} ({})", *rows,
                                tensor.shape()[0], describe(tensor));
        }
        rows = tensor.shape()[0];
      },
      batch);
  if (!rows) throw InvalidArgument("the dataset's elements hold no tensor");
  return *rows;
}

template <class Element>
class ElementIterator {
 public:
  virtual ~ElementIterator() = default;

  /// The next element; nothing at the end, and from then on.
  [[nodiscard]] virtual std::optional<Element> next() = 0;

  /// The wanted parts of the next element, which is a batch; nothing at the end. Overridden where
  /// the other rows need not even be read.
  [[nodiscard]] virtual std::optional<std::vector<Element>> next_parts(const SplitRule& rule) {
    const std::optional<Element> batch = next();
    if (!batch) return std::nullopt;
    std::vector<Element> parts;
    for (const RowRange range : rule(rows_of(*batch))) {
      parts.push_back(
          map_structure([&](const Tensor& tensor) { return tensor.rows(range.begin, range.end); }, *batch));
    }
    return parts;
  }
};

}  // namespace cohort
