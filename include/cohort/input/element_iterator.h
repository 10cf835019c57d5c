// One pass over a dataset. Transformations implement it over the iterator of what they
// transform; programs use range-for on Dataset instead.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/tensor_structure.h>
#include <cohort/input/split.h>
#include <cohort/value/structure.h>

namespace cohort {

/// Which rows are wanted of a batch of `rows` rows, part by part.
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

  /// The next element; nothing at the end, and from then on. An error takes the place of an element: the next
  /// call continues with the following one.
  [[nodiscard]] virtual std::optional<Element> next() = 0;

  /// Skips the next `count` elements; returns how many there were. Overridden where that needs no reading.
  virtual std::int64_t skip(std::int64_t count) {
    std::int64_t skipped = 0;
    while (skipped < count && next()) ++skipped;
    return skipped;
  }

  /// Stacks the next `count` elements, or as many as there are, and returns the parts of this batch that
  /// `rule` wants. Nothing at the end. Overridden where a batch can be made without single elements.
  [[nodiscard]] virtual std::optional<std::vector<Element>> next_stacked(std::int64_t count,
                                                                         const SplitRule& rule);

  /// The wanted parts of the next element, which is a batch; nothing at the end. Overridden where the other
  /// rows need not be read.
  [[nodiscard]] virtual std::optional<std::vector<Element>> next_parts(const SplitRule& rule);

 private:
  /// Skips the next `count` elements, any of which may be errors.
  void pass_over(std::int64_t count);
};

// ---- implementation of the templates ----

// Iterators over other elements than tensors have these functions, too, since they are virtual; batch() and
// distribution, which call them, refuse such elements at compile time.

template <class Element>
std::optional<std::vector<Element>> ElementIterator<Element>::next_stacked(std::int64_t count,
                                                                           const SplitRule& rule) {
  COHORT_CHECK(detail::TensorStructure<Element>);
  if constexpr (detail::TensorStructure<Element>) {
    std::vector<Element> rows;
    while (static_cast<std::int64_t>(rows.size()) < count) {
      std::optional<Element> row;
      try {
        row = next();
      } catch (...) {
        // The rest of the batch is skipped with the row that failed, so that later batches stay the same.
        pass_over(count - static_cast<std::int64_t>(rows.size()) - 1);
        throw;
      }
      if (!row) break;
      rows.push_back(std::move(*row));
    }
    if (rows.empty()) return std::nullopt;
    std::vector<Element> parts;
    for (const RowRange range : rule(static_cast<std::int64_t>(rows.size()))) {
      parts.push_back(detail::stack_rows(rows, range));
    }
    return parts;
  }
  return std::nullopt;
}

template <class Element>
void ElementIterator<Element>::pass_over(std::int64_t count) {
  for (; count > 0; --count) {
    try {
      if (skip(1) == 0) return;
    } catch (...) {
      // An error counts as an element.
    }
  }
}

template <class Element>
std::optional<std::vector<Element>> ElementIterator<Element>::next_parts(const SplitRule& rule) {
  COHORT_CHECK(detail::TensorStructure<Element>);
  if constexpr (detail::TensorStructure<Element>) {
    const std::optional<Element> batch = next();
    if (!batch) return std::nullopt;
    std::vector<Element> parts;
    for (const RowRange range : rule(rows_of(*batch))) {
      parts.push_back(
          map_structure([&](const Tensor& tensor) { return tensor.rows(range.begin, range.end); }, *batch));
    }
    return parts;
  }
  return std::nullopt;
}

}  // namespace cohort
