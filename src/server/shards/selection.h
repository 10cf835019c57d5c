// What an Index, or a mask, selects of a tensor of a given shape, and the copying of it. A tensor that is cut
// into shards is selected from shard by shard: the first axis's range is split (shard_layout.h), and what
// each shard has of it lies in one piece in the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cohort/device/shape.h>
#include <cohort/device/tensor.h>
#include <cohort/server/index.h>

namespace cohort {

struct Selection {
  std::vector<AxisRange> axes = {};  ///< for each axis of the tensor; a number is a range of one position
  Shape shape = {};                  ///< of the result, in which numbered axes are gone and new ones added
};

/// @throws InvalidArgument naming the shape for a position that does not exist, more terms than axes, several
/// Ellipses, or a step of 0.
[[nodiscard]] Selection select(const Index& index, const Shape& shape);

/// The rows that `mask` marks, in order. @throws InvalidArgument unless the mask is bool[rows].
[[nodiscard]] std::vector<std::int64_t> marked_rows(const Tensor& mask, std::int64_t rows);

/// Copies the elements of `source`, a CPU tensor, that lie within all `axes`, in their order. `to` has as
/// many bytes as they.
void copy_selected(const Tensor& source, std::span<const AxisRange> axes, std::span<std::byte> to);

}  // namespace cohort
