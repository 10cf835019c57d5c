#include <cohort/value/indexed_slices.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/collective/reduction.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/value/tensor_or_slices.h>

#include "device/device_runtime.h"

namespace cohort {
namespace {

/// Calls `visitor(indices as a span)` with their own integer type.
template <class Visitor>
void visit_indices(const Tensor& placed, Visitor visitor) {
  const Tensor indices = placed.on_host();
  if (indices.dtype() == DType::kInt32)
    visitor(std::span<const std::int32_t>(indices.span<std::int32_t>()));
  else
    visitor(std::span<const std::int64_t>(indices.span<std::int64_t>()));
}

void require_fitting(const IndexedSlices& slices) {
  const auto& [values, indices, dense_shape] = slices;
  if (indices.dtype() != DType::kInt32 && indices.dtype() != DType::kInt64) {
    throw InvalidArgument("IndexedSlices: indices are {}; they must be int32 or int64", describe(indices));
  }
  if (indices.shape().rank() != 1) {
    throw InvalidArgument("IndexedSlices: indices are {}; they must have one axis", describe(indices));
  }
  if (dense_shape.rank() == 0)
    throw InvalidArgument("IndexedSlices: the dense tensor is a scalar, which has no rows");
  if (values.shape() != dense_shape.with(0, indices.shape()[0])) {
    throw InvalidArgument("IndexedSlices: values are {}, but {} rows of {} are {}", describe(values),
                          indices.shape()[0], to_string(dense_shape),
                          to_string(dense_shape.with(0, indices.shape()[0])));
  }
}

void require_alike(const IndexedSlices& part, const IndexedSlices& first, std::size_t number) {
  if (part.values.dtype() == first.values.dtype() && part.indices.dtype() == first.indices.dtype() &&
      part.dense_shape == first.dense_shape) {
    return;
  }
  throw InvalidArgument(
      "cannot concatenate IndexedSlices: number {} is {} with {} indices, number 0 is {} with {} indices; "
      "dtypes and dense shapes must agree",
      number, describe(part), to_string(part.indices.dtype()), describe(first),
      to_string(first.indices.dtype()));
}

}  // namespace

void validate(const IndexedSlices& slices) {
  require_fitting(slices);
  visit_indices(slices.indices, [&](const auto rows) {
    const auto stray = std::ranges::find_if(
        rows, [&](const std::int64_t row) { return row < 0 || row >= slices.dense_shape[0]; });
    if (stray == rows.end()) return;
    throw InvalidArgument("IndexedSlices: index {} at position {} is not a row of {}; rows are 0 to {}",
                          *stray, stray - rows.begin(), to_string(slices.dense_shape),
                          slices.dense_shape[0] - 1);
  });
}

Tensor densify(const IndexedSlices& slices) {
  validate(slices);
  const Tensor& values = slices.values;
  require_legal(ReduceOp::kSum, values.dtype());
  if (is_half(values.dtype())) {  // a row that is named often is rounded once
    return densify({values.cast(DType::kFloat32), slices.indices, slices.dense_shape}).cast(values.dtype());
  }
  Tensor dense = Tensor::zeros(slices.dense_shape, values.dtype(), values.device());
  if (!is_cpu(dense)) {
    const Device device = dense.device();
    runtime_of(device).combine_rows(ElementOperator::kAdd, dense, slices.indices.to(device), values);
    return dense;
  }
  visit_indices(slices.indices, [&](const auto rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Tensor target = dense.row(rows[i]);
      const std::array<const std::byte*, 2> addends{target.data(),
                                                    values.row(static_cast<std::int64_t>(i)).data()};
      reduce_elements(values.dtype(), ReduceOp::kSum, addends, target.data(), target.elements());
    }
  });
  return dense;
}

IndexedSlices concatenate(std::span<const IndexedSlices> parts) {
  if (parts.empty()) throw InvalidArgument("cannot concatenate no IndexedSlices");
  std::vector<Tensor> values;
  std::vector<Tensor> indices;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require_alike(parts[i], parts.front(), i);
    values.push_back(parts[i].values);
    indices.push_back(parts[i].indices);
  }
  return {concatenate(values, 0), concatenate(indices, 0), parts.front().dense_shape};
}

std::string describe(const IndexedSlices& slices) {
  return fmt::format("{} rows of {}{}", slices.indices.elements(), to_string(slices.values.dtype()),
                     to_string(slices.dense_shape));
}

std::ostream& operator<<(std::ostream& stream, const IndexedSlices& slices) {
  return stream << "IndexedSlices(values=" << slices.values << ", indices=" << slices.indices
                << ", dense_shape=" << to_string(slices.dense_shape) << ")";
}

namespace {

Tensor copy_to(const Tensor& tensor, Device device) {
  Tensor copy = Tensor::uninitialized(tensor.shape(), tensor.dtype(), device);
  copy.copy_from(tensor);
  return copy;
}

}  // namespace

TensorOrSlices with_values(const TensorOrSlices& leaf, Tensor values) {
  if (const auto* slices = std::get_if<IndexedSlices>(&leaf))
    return IndexedSlices{std::move(values), slices->indices, slices->dense_shape};
  return values;
}

TensorOrSlices copy_to(const TensorOrSlices& leaf, Device device) {
  if (const auto* slices = std::get_if<IndexedSlices>(&leaf)) {
    return IndexedSlices{copy_to(slices->values, device), copy_to(slices->indices, device),
                         slices->dense_shape};
  }
  return copy_to(std::get<Tensor>(leaf), device);
}

std::string describe(const TensorOrSlices& leaf) {
  return std::visit([](const auto& either) { return describe(either); }, leaf);
}

}  // namespace cohort
