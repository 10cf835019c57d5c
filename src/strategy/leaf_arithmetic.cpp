#include "leaf_arithmetic.h"

#include <utility>

#include <cohort/base/fingerprint.h>

#include "collective/kernels/reduce_tensors.h"

namespace cohort {
namespace {

bool alike(const TensorOrSlices& a, const TensorOrSlices& b) {
  if (is_sparse(a) != is_sparse(b) || values_of(a).dtype() != values_of(b).dtype()) return false;
  if (!is_sparse(a)) return values_of(a).shape() == values_of(b).shape();
  const auto& one = std::get<IndexedSlices>(a);
  const auto& other = std::get<IndexedSlices>(b);
  return one.dense_shape == other.dense_shape && one.indices.dtype() == other.indices.dtype();
}

DType result_dtype(ReduceOp op, DType dtype) { return op == ReduceOp::kMean ? mean_dtype(dtype) : dtype; }

Tensor reduced_tensors(ReduceOp op, std::span<const TensorOrSlices> components) {
  std::vector<Tensor> tensors;
  tensors.reserve(components.size());
  for (const TensorOrSlices& component : components) tensors.push_back(std::get<Tensor>(component));
  return reduced(op, tensors);
}

}  // namespace

DType mean_dtype(DType dtype) {
  if (is_floating(dtype) || dtype == DType::kBool) return dtype;
  return size_of(dtype) <= 2 ? DType::kFloat32 : DType::kFloat64;
}

void require_defined(ReduceOp op, const TensorOrSlices& leaf) {
  if (const auto* slices = std::get_if<IndexedSlices>(&leaf)) validate(*slices);
  require_legal(op, result_dtype(op, values_of(leaf).dtype()));
}

TensorOrSlices prepared(ReduceOp op, const TensorOrSlices& leaf) {
  require_defined(op, leaf);
  const Tensor& values = values_of(leaf);
  const DType dtype = result_dtype(op, values.dtype());
  return dtype == values.dtype() ? leaf : with_values(leaf, values.cast(dtype));
}

std::uint64_t converted_dtypes(ReduceOp op, std::span<const TensorOrSlices> leaves) {
  if (op != ReduceOp::kMean) return 0;
  Fingerprint fingerprint;
  for (const TensorOrSlices& leaf : leaves)
    fingerprint.add(static_cast<std::uint64_t>(values_of(leaf).dtype()));
  return fingerprint.value();
}

void require_alike(const Components& value, const std::function<std::string(std::size_t)>& name) {
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (alike(value[i], value.front())) continue;
    throw InvalidArgument("reduce: {} has {}, {} has {}; without an axis, shapes must agree", name(i),
                          describe(value[i]), name(0), describe(value.front()));
  }
}

TensorOrSlices reduced(ReduceOp op, std::span<const TensorOrSlices> components) {
  if (!is_sparse(components.front())) return reduced_tensors(op, components);
  std::vector<IndexedSlices> parts;
  parts.reserve(components.size());
  for (const TensorOrSlices& component : components) parts.push_back(std::get<IndexedSlices>(component));
  TensorOrSlices all = concatenate(parts);
  if (op == ReduceOp::kMean) divide(all, components.size());
  return all;
}

void divide(const TensorOrSlices& leaf, std::size_t divisor) { divide(values_of(leaf), divisor); }

Components placed(const TensorOrSlices& result, const Destinations& destinations) {
  Components components;
  components.reserve(destinations.devices().size());
  bool given = false;
  for (const Device device : destinations.devices()) {
    const bool is_there = !given && values_of(result).device() == device;
    components.push_back(is_there ? result : copy_to(result, device));
    given = given || is_there;
  }
  return components;
}

}  // namespace cohort
