// What the stages of a dataset need that is no template: counts of elements, numbers and rows in memory,
// shards.

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <cohort/base/error.h>
#include <cohort/input/cardinality.h>
#include <cohort/input/detail/selection.h>
#include <cohort/input/detail/sources.h>

namespace cohort {

Cardinality Cardinality::times(std::int64_t rounds) const {
  if (rounds == 0) return of(0);
  if (!is_known()) return *this;
  std::int64_t product = 0;
  return __builtin_mul_overflow(count_, rounds, &product) ? infinite() : of(product);
}

Cardinality operator+(const Cardinality& first, const Cardinality& second) {
  if (first.is_infinite() || second.is_infinite()) return Cardinality::infinite();
  if (!first.is_known() || !second.is_known()) return Cardinality::unknown();
  std::int64_t sum = 0;
  return __builtin_add_overflow(first.count_, second.count_, &sum) ? Cardinality::infinite()
                                                                   : Cardinality::of(sum);
}

Cardinality Cardinality::shorter(const Cardinality& a, const Cardinality& b) {
  const Cardinality nothing = of(0);
  if (a == nothing || b == nothing) return nothing;
  if (a.is_infinite()) return b;
  if (b.is_infinite()) return a;
  return a.is_known() && b.is_known() ? of(std::min(a.count_, b.count_)) : unknown();
}

}  // namespace cohort

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

Tensor gather_rows(const Tensor& tensor, std::span<const std::int64_t> indices) {
  Tensor rows = Tensor::uninitialized(tensor.shape().with(0, static_cast<std::int64_t>(indices.size())),
                                      tensor.dtype(), tensor.device());
  if (rows.bytes() == 0) return rows;
  const std::size_t row_bytes = rows.bytes() / indices.size();
  std::byte* to = rows.data();
  for (const std::int64_t index : indices) {
    std::memcpy(to, tensor.data() + static_cast<std::size_t>(index) * row_bytes, row_bytes);
    to += row_bytes;
  }
  return rows;
}

void check_shard(const Shard& shard) {
  if (shard.count < 1) {
    throw InvalidArgument("a dataset cannot be divided into {} shards; give at least 1", shard.count);
  }
  if (shard.index < 0 || shard.index >= shard.count) {
    throw InvalidArgument("there is no shard {} of {}: they are numbered from 0 to {}", shard.index,
                          shard.count, shard.count - 1);
  }
}

void throw_too_few_elements(std::int64_t found, int required) {
  throw InvalidArgument(
      "a dataset of {} elements (found) cannot be divided among {} shards (required): each needs at least "
      "one; use more files or smaller batches, fewer workers, or AutoShardPolicy::kOff",
      found, required);
}

void throw_unfilled_hint() {
  throw WrongContext(
      "shard(Shard::hint()) is a placeholder that a strategy fills in when it distributes the dataset under "
      "AutoShardPolicy::kHint; to iterate it yourself, give the shard's count and index");
}

}  // namespace cohort::detail
