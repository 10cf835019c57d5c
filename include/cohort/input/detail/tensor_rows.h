// The rows of tensors in memory.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <cohort/input/detail/gather_rows.h>
#include <cohort/input/detail/random_access.h>
#include <cohort/input/element_iterator.h>

namespace cohort::detail {

template <class Element>
class TensorRows final : public RandomAccess<Element> {
 public:
  /// @throws InvalidArgument when the tensors of the structure differ in rows.
  explicit TensorRows(Element tensors) : tensors_(std::move(tensors)), rows_(rows_of(tensors_)) {}

  [[nodiscard]] std::int64_t size() const override { return rows_; }
  [[nodiscard]] Element at(std::int64_t index) const override {
    return map_structure([&](const Tensor& tensor) { return tensor.row(index); }, tensors_);
  }
  [[nodiscard]] Element range(std::int64_t begin, std::int64_t end) const override {
    return map_structure([&](const Tensor& tensor) { return tensor.rows(begin, end); }, tensors_);
  }
  [[nodiscard]] Element stacked(std::span<const std::int64_t> indices) const override {
    return map_structure([&](const Tensor& tensor) { return gather_rows(tensor, indices); }, tensors_);
  }

 private:
  Element tensors_;
  std::int64_t rows_;
};

}  // namespace cohort::detail
