#include <cohort/device/tensor_ops.h>

#include <algorithm>
#include <vector>

#include "device_runtime.h"

namespace cohort {
namespace {

std::size_t product(std::span<const std::int64_t> extents) {
  std::size_t result = 1;
  for (const std::int64_t extent : extents) result *= static_cast<std::size_t>(extent);
  return result;
}

/// Normalised and checked for duplicates: one flag per axis of `shape`.
std::vector<bool> mark_axes(const Shape& shape, std::span<const int> axes) {
  std::vector<bool> marked(static_cast<std::size_t>(shape.rank()), false);
  for (const int axis : axes) {
    const auto index = static_cast<std::size_t>(shape.normalize_axis(axis));
    if (marked[index]) throw InvalidArgument("axis {} is named twice", axis);
    marked[index] = true;
  }
  return marked;
}

/// Adds each element of `tensor` to the sum that its index maps to through `strides`.
template <class T, class Sum>
void add_along(const Tensor& tensor, std::span<const std::size_t> strides, std::span<Sum> sums) {
  const auto extents = tensor.shape().extents();
  std::vector<std::int64_t> index(strides.size(), 0);
  std::size_t target = 0;
  for (const T value : tensor.span<T>()) {
    if constexpr (std::is_integral_v<Sum>) {
      const auto sum = static_cast<std::uint64_t>(sums[target]);  // unsigned, because integers wrap
      sums[target] = static_cast<Sum>(sum + static_cast<std::uint64_t>(convert_element<Sum>(value)));
    } else {
      sums[target] += convert_element<Sum>(value);
    }
    for (std::size_t axis = index.size(); axis-- > 0;) {
      target += strides[axis];
      if (++index[axis] < extents[axis]) break;
      target -= strides[axis] * static_cast<std::size_t>(extents[axis]);
      index[axis] = 0;
    }
  }
}

}  // namespace

void copy_each(std::span<const Tensor> from, std::span<const Tensor> to) {
  COHORT_CHECK(from.size() == to.size());
  if (!from.empty() && !is_cpu(from.front())) return runtime_of(from.front().device()).copy_each(from, to);
  for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_from(from[i]);
}

Tensor concatenate(std::span<const Tensor> parts, int axis) {
  if (parts.empty()) throw InvalidArgument("cannot concatenate nothing; give at least one tensor");
  const Tensor& first = parts.front();
  if (first.shape().rank() == 0) {
    throw InvalidArgument("cannot concatenate scalars; reshape them to [1] first");
  }
  const int along = first.shape().normalize_axis(axis);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    if (part.dtype() != first.dtype() || part.shape().rank() != first.shape().rank() ||
        part.shape().with(along, 0) != first.shape().with(along, 0)) {
      throw InvalidArgument("shape mismatch: part {} is {}, part 0 is {}; only axis {} may differ", i,
                            describe(part), describe(first), along);
    }
    total += part.shape()[along];
  }

  Tensor result = Tensor::uninitialized(first.shape().with(along, total), first.dtype(), first.device());
  const auto extents = result.shape().extents();
  const std::size_t outer = product(extents.first(static_cast<std::size_t>(along)));
  const std::size_t inner =
      product(extents.subspan(static_cast<std::size_t>(along) + 1)) * size_of(first.dtype());
  const std::size_t row = static_cast<std::size_t>(total) * inner;
  std::size_t offset = 0;
  for (const Tensor& part : parts) {
    const std::size_t bytes = static_cast<std::size_t>(part.shape()[along]) * inner;
    if (bytes == 0 || outer == 0) continue;
    copy_blocks({.to = result.data() + offset,
                 .to_device = result.device(),
                 .to_pitch = row,
                 .from = part.data(),
                 .from_device = part.device(),
                 .from_pitch = bytes,
                 .width = bytes,
                 .count = outer});
    offset += bytes;
  }
  return result;
}

Tensor stack_tensors(std::span<const Tensor> rows) {
  if (rows.empty()) throw InvalidArgument("cannot stack nothing; give at least one tensor");
  const Tensor& first = rows.front();
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(rows.size())};
  extents.insert(extents.end(), first.shape().extents().begin(), first.shape().extents().end());
  Tensor result = Tensor::uninitialized(Shape(extents), first.dtype(), first.device());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].dtype() != first.dtype() || rows[i].shape() != first.shape()) {
      throw InvalidArgument("cannot stack {} (row {}) with {} (row 0): rows must agree", describe(rows[i]), i,
                            describe(first));
    }
    result.row(static_cast<std::int64_t>(i)).copy_from(rows[i]);
  }
  return result;
}

Tensor sum_along(const Tensor& tensor, std::span<const int> axes) {
  const Tensor values = tensor.on_host();
  const Shape& shape = values.shape();
  const std::vector<bool> summed = mark_axes(shape, axes);
  std::vector<std::int64_t> kept;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!summed[static_cast<std::size_t>(axis)]) kept.push_back(shape[axis]);
  }
  // Result strides per source axis: 0 along summed axes, so that all their elements meet.
  std::vector<std::size_t> strides(summed.size(), 0);
  std::size_t stride = 1;
  for (std::size_t axis = summed.size(); axis-- > 0;) {
    if (summed[axis]) continue;
    strides[axis] = stride;
    stride *= static_cast<std::size_t>(shape.extents()[axis]);
  }

  Tensor result = Tensor::zeros(Shape(kept), is_floating(values.dtype()) ? DType::kFloat64 : DType::kInt64);
  visit_dtype(values.dtype(), [&]<class T>(std::type_identity<T>) {
    if (is_floating(values.dtype()))
      add_along<T, double>(values, strides, result.span<double>());
    else
      add_along<T, std::int64_t>(values, strides, result.span<std::int64_t>());
  });
  return result;
}

}  // namespace cohort
