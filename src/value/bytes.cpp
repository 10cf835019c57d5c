#include <cohort/value/detail/bytes.h>

#include <algorithm>
#include <array>

#include <cohort/base/error.h>

namespace cohort::detail {

void ByteWriter::blob(std::span<const std::byte> bytes) {
  number(bytes.size());
  append(bytes);
}

void ByteWriter::shape(const Shape& shape) {
  number(static_cast<std::uint8_t>(shape.rank()));
  append(std::as_bytes(shape.extents()));
}

void ByteWriter::tensor(const Tensor& tensor) {
  const Tensor here = tensor.on_host();
  number(here.dtype());
  shape(here.shape());
  append(here.raw());
}

void ByteReader::refuse(const char* what) const { throw DataLoss("{} {}", source_, what); }

std::span<const std::byte> ByteReader::next(std::size_t bytes) {
  if (bytes > rest_.size()) refuse("ends too early");
  const auto result = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return result;
}

bool ByteReader::boolean() {
  const std::byte byte = next(1).front();
  if (byte > std::byte{1}) refuse("has an impossible bool");
  return byte == std::byte{1};
}

std::size_t ByteReader::count() {
  const auto count = number<std::size_t>();
  if (count > rest_.size()) refuse("has an impossible length");
  return count;
}

std::string_view ByteReader::text() {
  const std::span<const std::byte> bytes = blob();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Shape ByteReader::shape() {
  const auto rank = number<std::uint8_t>();
  if (rank > Shape::kLargestRank) refuse("has an impossible shape");
  std::array<std::int64_t, Shape::kLargestRank> extents{};
  const std::span<const std::byte> bytes = next(rank * sizeof(std::int64_t));
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(extents)).begin());
  try {
    return Shape(std::span<const std::int64_t>(extents.data(), rank));
  } catch (const InvalidArgument&) {
    refuse("has an impossible shape");
  }
}

DType ByteReader::dtype() {
  const auto dtype = number<DType>();
  if (static_cast<std::size_t>(dtype) >= kAllDTypes.size()) refuse("has an unknown dtype");
  return dtype;
}

std::size_t ByteReader::bytes_of(const Shape& shape, DType dtype) const {
  if (shape.elements() > rest_.size() / size_of(dtype)) refuse("ends too early");
  return shape.elements() * size_of(dtype);
}

void ByteReader::require_elements(std::span<const std::byte> bytes, DType dtype) const {
  const auto is_bool = [](std::byte byte) { return byte <= std::byte{1}; };
  if (dtype == DType::kBool && !std::ranges::all_of(bytes, is_bool)) refuse("has an impossible bool");
}

Tensor ByteReader::tensor() {
  const DType type = dtype();
  const Shape extents = shape();
  const std::span<const std::byte> bytes = next(bytes_of(extents, type));
  require_elements(bytes, type);
  Tensor result = Tensor::uninitialized(extents, type);
  if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

}  // namespace cohort::detail
