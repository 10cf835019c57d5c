#include <cohort/device/tensor_spec.h>

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

namespace cohort {

std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::kInt8: return "int8";
    case DType::kInt16: return "int16";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kUInt8: return "uint8";
    case DType::kUInt16: return "uint16";
    case DType::kUInt32: return "uint32";
    case DType::kUInt64: return "uint64";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kBool: return "bool";
  }
  return "unknown";
}

DType parse_dtype(std::string_view name) {
  for (const DType dtype : kAllDTypes)
    if (to_string(dtype) == name) return dtype;
  std::string known;
  for (const DType dtype : kAllDTypes) {
    known += known.empty() ? "" : ", ";
    known += to_string(dtype);
  }
  throw InvalidArgument("unknown dtype '{}'; known: {}.", name, known);
}

void detail::throw_unknown_dtype(DType dtype) {
  throw Internal("dtype {} is not one of Cohort's", static_cast<int>(dtype));
}

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

std::string describe(const TensorSpec& spec) {
  std::string text = fmt::format("{}{}", to_string(spec.dtype), to_string(spec.shape));
  if (!spec.name.empty()) text += fmt::format(" '{}'", spec.name);
  return text;
}

std::uint64_t layout_of(std::span<const TensorSpec> specs) {
  Fingerprint layout;
  for (const TensorSpec& spec : specs) {
    layout.add(static_cast<std::uint64_t>(spec.dtype)).add(spec.shape.extents().size());
    for (const std::int64_t extent : spec.shape.extents()) layout.add(static_cast<std::uint64_t>(extent));
  }
  return layout.value();
}

}  // namespace cohort
