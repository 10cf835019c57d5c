#include <cohort/input/detail/range.h>

namespace cohort::detail {

NumberRange::NumberRange(std::int64_t start, std::int64_t stop, std::int64_t step)
    : start_(start), step_(step), size_(0) {
  if (step == 0) throw InvalidArgument("a range from {} to {} cannot have steps of 0", start, stop);
  // Unsigned, because the distance may be more than the largest signed number.
  const bool upwards = step > 0;
  if (upwards ? start >= stop : start <= stop) return;
  const std::uint64_t distance = upwards
                                     ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                     : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const std::uint64_t stride = upwards ? static_cast<std::uint64_t>(step) : -static_cast<std::uint64_t>(step);
  size_ = static_cast<std::int64_t>((distance - 1) / stride + 1);
  if (size_ < 0)
    throw InvalidArgument("a range from {} to {} has more numbers than can be counted", start, stop);
}

Tensor NumberRange::range(std::int64_t begin, std::int64_t end) const {
  Tensor numbers = Tensor::uninitialized({end - begin}, DType::kInt64);
  std::int64_t index = begin;
  for (std::int64_t& value : numbers.span<std::int64_t>()) value = number(index++);
  return numbers;
}

Tensor NumberRange::stacked(std::span<const std::int64_t> indices) const {
  Tensor numbers = Tensor::uninitialized({static_cast<std::int64_t>(indices.size())}, DType::kInt64);
  auto value = numbers.span<std::int64_t>().begin();
  for (const std::int64_t index : indices) *value++ = number(index);
  return numbers;
}

}  // namespace cohort::detail
