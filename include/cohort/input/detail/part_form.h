// The form of a replica's batches (structure, dtypes and shapes but for the rows), from which empty ones are
// made.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <cohort/device/tensor_spec.h>
#include <cohort/value/structure.h>

namespace cohort::detail {

template <class Element>
class PartForm {
 public:
  explicit PartForm(const Element& like) : like_(like) {
    for_each_leaf([&](const Tensor& tensor) { specs_.push_back({tensor.shape(), tensor.dtype()}); }, like);
    // Only its form is kept, not its elements.
    if (can_be_empty()) like_ = without_rows(Device());
  }

  /// From another worker. @throws InvalidArgument when `specs` are not enough to make an element.
  explicit PartForm(std::span<const TensorSpec> specs) : like_(element_of(specs)) {
    specs_.assign(specs.begin(), specs.end());
  }

  [[nodiscard]] std::span<const TensorSpec> specs() const { return specs_; }

  [[nodiscard]] bool can_be_empty() const {
    return std::ranges::all_of(specs_, [](const TensorSpec& spec) { return spec.shape.rank() > 0; });
  }

  [[nodiscard]] Element without_rows(Device device) const {
    return map_structure(
        [&](const Tensor& tensor) {
          return Tensor::uninitialized(tensor.shape().with(0, 0), tensor.dtype(), device);
        },
        like_);
  }

 private:
  static Element element_of(std::span<const TensorSpec> specs) {
    static_assert(std::is_default_constructible_v<Element>,
                  "elements of distributed datasets are default-constructible: "
                  "a worker without data makes empty ones");
    Element element{};
    std::size_t leaves = 0;
    for_each_leaf(
        [&](Tensor& tensor) {
          if (leaves < specs.size()) tensor = Tensor::zeros(specs[leaves].shape, specs[leaves].dtype);
          ++leaves;
        },
        element);
    if (leaves == specs.size()) return element;
    throw InvalidArgument(
        "this worker has no data at all, and the others' elements of {} tensors "
        "do not follow from the type of the elements; give every worker at least one element",
        specs.size());
  }

  Element like_;
  std::vector<TensorSpec> specs_;
};

}  // namespace cohort::detail
