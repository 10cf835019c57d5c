#include <cohort/rpc/detail/codec.h>

namespace cohort::rpc {
namespace {

/// Of the elements at the end of a message; messages begin at a multiple of it.
constexpr std::size_t kEndAlignment = 16;

}  // namespace

void Encoder::text(std::string_view text) { blob(std::as_bytes(std::span(text))); }

void Encoder::blob(std::span<const std::byte> bytes) {
  number(bytes.size());
  append(bytes);
}

void Encoder::shape(const Shape& shape) {
  number(static_cast<std::uint8_t>(shape.rank()));
  append(std::as_bytes(shape.extents()));
}

void Encoder::tensor(const Tensor& tensor) {
  const Tensor here = tensor.on_host();
  number(here.dtype());
  shape(here.shape());
  append(here.raw());
}

void Encoder::tensor_at_end(const Tensor& tensor) {
  number(tensor.dtype());
  shape(tensor.shape());
}

void Encoder::align_end() {
  bytes_.resize((bytes_.size() + kEndAlignment - 1) / kEndAlignment * kEndAlignment);
}

void Encoder::variable(const Variable& variable) {
  if (!variable.state()->is_kept_elsewhere()) {
    throw InvalidArgument(
        "variable '{}' cannot be sent to another task: no parameter server keeps it; make it in the scope of "
        "a "
        "ParameterServerStrategy",
        variable.name());
  }
  number(variable.state()->number());
}

std::span<const std::byte> Decoder::next(std::size_t bytes) {
  if (bytes > rest_.size()) throw DataLoss("a message from another task ends too early");
  const auto result = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return result;
}

std::size_t Decoder::count() {
  const auto count = number<std::size_t>();
  if (count > rest_.size()) throw DataLoss("a message from another task has an impossible length");
  return count;
}

std::string_view Decoder::text() {
  const std::span<const std::byte> bytes = blob();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> Decoder::blob() { return next(count()); }

Shape Decoder::shape() {
  const auto rank = number<std::uint8_t>();
  if (rank > Shape::kLargestRank) throw DataLoss("a message from another task has an impossible shape");
  std::array<std::int64_t, Shape::kLargestRank> extents{};
  const std::span<const std::byte> bytes = next(rank * sizeof(std::int64_t));
  if (rank > 0) std::memcpy(extents.data(), bytes.data(), bytes.size());
  return Shape(std::span<const std::int64_t>(extents.data(), rank));
}

DType Decoder::dtype() {
  const auto dtype = number<DType>();
  if (static_cast<std::size_t>(dtype) >= kAllDTypes.size())
    throw DataLoss("a message from another task has an unknown dtype");
  return dtype;
}

Tensor Decoder::tensor() {
  const DType type = dtype();
  const Shape extents = shape();
  const std::span<const std::byte> bytes = next(extents.elements() * size_of(type));
  Tensor result = Tensor::uninitialized(extents, type);
  if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

Tensor Decoder::tensor_at_end() {
  const DType type = dtype();
  const Shape extents = shape();
  const std::size_t size = extents.elements() * size_of(type);
  if (size > rest_.size()) throw DataLoss("a message from another task ends too early");
  const std::span<const std::byte> bytes = rest_.last(size);
  rest_ = rest_.first(rest_.size() - size);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kEndAlignment == 0) {
    auto* data = const_cast<std::byte*>(bytes.data());  // nobody writes to the view
    return Tensor::wrap(std::make_shared<const Buffer>(data, size, Device(), nullptr), 0, extents, type);
  }
  Tensor copy = Tensor::uninitialized(extents, type);
  if (size > 0) std::memcpy(copy.data(), bytes.data(), size);
  return copy;
}

Variable Decoder::variable() {
  const auto wanted = number<std::uint64_t>();
  if (variables_ == nullptr) throw DataLoss("a message from another task has a variable where none can be");
  return variables_->variable(wanted);
}

}  // namespace cohort::rpc
