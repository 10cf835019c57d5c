// Numbers from a start, a step apart, as scalars.
#pragma once

#include <cstdint>
#include <span>

#include <cohort/device/tensor.h>
#include <cohort/input/detail/random_access.h>

namespace cohort::detail {

class NumberRange final : public RandomAccess<Tensor> {
 public:
  /// From `start` to before `stop`. @throws InvalidArgument for a step of 0.
  NumberRange(std::int64_t start, std::int64_t stop, std::int64_t step);

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] Tensor at(std::int64_t index) const override { return Tensor::scalar(number(index)); }
  [[nodiscard]] Tensor range(std::int64_t begin, std::int64_t end) const override;
  [[nodiscard]] Tensor stacked(std::span<const std::int64_t> indices) const override;

 private:
  /// Unsigned, because `index * step` alone may be more than the largest signed number.
  [[nodiscard]] std::int64_t number(std::int64_t index) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start_) +
                                     static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(step_));
  }

  std::int64_t start_;
  std::int64_t step_;
  std::int64_t size_;
};

}  // namespace cohort::detail
