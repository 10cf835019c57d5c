// Elements put together into a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cohort/device/tensor_ops.h>
#include <cohort/input/split.h>
#include <cohort/value/structure.h>

namespace cohort::detail {

/// `rows[range]` stacked: each tensor gets a new first axis.
/// @throws InvalidArgument when the rows differ in structure, shape or dtype.
template <class Element>
[[nodiscard]] Element stack_rows(const std::vector<Element>& rows, RowRange range) {
  std::vector<std::vector<Tensor>> columns;  // for each tensor of the element: its rows
  for (std::int64_t index = range.begin; index < range.end; ++index) {
    std::size_t column = 0;
    for_each_leaf(
        [&](const Tensor& tensor) {
          if (column == columns.size()) columns.emplace_back();
          columns[column++].push_back(tensor);
        },
        rows[static_cast<std::size_t>(index)]);
  }
  std::size_t column = 0;
  return map_structure(
      [&](const Tensor& like) {
        // An empty part still has the shape and dtype of its rows.
        if (columns.empty()) return stack_tensors(std::span<const Tensor>(&like, 1)).rows(0, 0);
        return stack_tensors(columns[column++]);
      },
      rows.front());
}

}  // namespace cohort::detail
