#include <cohort/device/shape.h>

#include <fmt/ranges.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

std::size_t count_elements(std::span<const std::int64_t> extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw InvalidArgument("shape [{}] has a negative extent", fmt::join(extents, ", "));
    if (__builtin_mul_overflow(elements, extent, &elements)) {
      throw InvalidArgument("shape [{}] has more than 2^63-1 elements", fmt::join(extents, ", "));
    }
  }
  return static_cast<std::size_t>(elements);
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> extents)
    : rank_(extents.size()), elements_(count_elements(extents)) {
  if (rank_ > kLargestRank) {
    throw InvalidArgument("shape [{}] has {} axes; tensors have at most {}, so merge some by reshaping",
                          fmt::join(extents, ", "), rank_, kLargestRank);
  }
  std::ranges::copy(extents, extents_.begin());
}

void Shape::throw_no_such_axis(int axis) const {
  throw InvalidArgument("axis {} is out of range for shape {} of rank {}", axis, to_string(*this), rank());
}

Shape Shape::with(int axis, std::int64_t extent) const {
  std::array<std::int64_t, kLargestRank> changed = extents_;
  changed[static_cast<std::size_t>(normalize_axis(axis))] = extent;
  return Shape(std::span<const std::int64_t>(changed).first(rank_));
}

Shape Shape::without(int axis) const {
  std::array<std::int64_t, kLargestRank> left{};
  const auto gone = extents().begin() + normalize_axis(axis);
  const auto rest = std::copy(extents().begin(), gone, left.begin());
  std::copy(gone + 1, extents().end(), rest);
  return Shape(std::span<const std::int64_t>(left).first(rank_ - 1));
}

Shape Shape::row() const {
  if (rank() == 0) throw InvalidArgument("a scalar has no rows; give the tensor at least one axis");
  return without(0);
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.extents(), ", ")); }

}  // namespace cohort
