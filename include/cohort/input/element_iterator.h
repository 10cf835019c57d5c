// One pass over a dataset. Transformations implement it over the iterator of what they
// transform; programs use range-for on Dataset instead.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/stack_rows.h>
#include <cohort/input/detail/tensor_structure.h>
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

  /// The next element; nothing at the end, and from then on. An error takes the place of an element:
  /// the call after it goes on with what follows.
  [[nodiscard]] virtual std::optional<Element> next() = 0;

  /// Passes over the next `count` elements; returns how many there were. Overridden where they need
  /// not be read for that.
  virtual std::int64_t skip(std::int64_t count) {
    std::int64_t skipped = 0;
    while (skipped < count && next()) ++skipped;
    return skipped;
  }

  /// The next `count` elements, or as many as there are, stacked: of this batch the parts that `rule`
  /// wants. Nothing at the end. Overridden where a batch can be had without its elements one by one.
  [[nodiscard]] virtual std::optional<std::vector<Element>> next_stacked(std::int64_t count,
                                                                         const SplitRule& rule);

  /// The wanted parts of the next element, which is a batch; nothing at the end. Overridden where
  /// the other rows need not even be read.
  [[nodiscard]] virtual std::optional<std::vector<Element>> next_parts(const SplitRule& rule);

 private:
  /// Passes over the next `count` elements, of which any may be errors.
  void pass_over(std::int64_t count);
};

// ---- implementation of the templates ----

// Elements that are not of tensors have these functions, too, for they are virtual; batch() and
// distribution, which call them, refuse such elements when they are compiled.

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
        // The rest of the batch goes with the row that failed: later batches stay what they would be.
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
      // It was in an element's place.
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
