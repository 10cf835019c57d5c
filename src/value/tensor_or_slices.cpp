#include <cohort/value/tensor_or_slices.h>

#include <utility>

namespace cohort {
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
