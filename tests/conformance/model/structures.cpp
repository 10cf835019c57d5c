#include "structures.h"

namespace cohort::model {
namespace {

DType dtype_of(Type type) { return static_cast<DType>(type); }  // the lists have the same order

}  // namespace

Tensor to_tensor(const Array& array) {
  Tensor tensor = Tensor::uninitialized(Shape(array.extents), dtype_of(array.type));
  visit_dtype(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    const std::span<T> elements = tensor.span<T>();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if constexpr (HalfElement<T>)
        elements[i] = T(static_cast<float>(array.elements[i]));
      else
        elements[i] = static_cast<T>(array.elements[i]);
    }
  });
  return tensor;
}

TensorOrSlices to_library(const Leaf& leaf) {
  if (!leaf.rows) return to_tensor(leaf.values);
  return IndexedSlices{to_tensor(leaf.values), to_tensor(*leaf.rows), Shape(leaf.dense)};
}

Leaf from_library(const TensorOrSlices& leaf) {
  const auto array_of = [](const Tensor& tensor) {
    const auto extents = tensor.shape().extents();
    Array array{static_cast<Type>(tensor.dtype()), {extents.begin(), extents.end()}, {}};
    visit_dtype(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
      for (const T element : tensor.on_host().span<T>()) {
        if constexpr (HalfElement<T>)
          array.elements.push_back(static_cast<float>(element));
        else
          array.elements.push_back(static_cast<Number>(element));
      }
    });
    return array;
  };
  if (!is_sparse(leaf)) return {array_of(std::get<Tensor>(leaf))};
  const auto& slices = std::get<IndexedSlices>(leaf);
  const auto dense = slices.dense_shape.extents();
  return {array_of(slices.values), array_of(slices.indices), {dense.begin(), dense.end()}};
}

}  // namespace cohort::model
