#include <cohort/rpc/detail/codec.h>

namespace cohort::rpc {

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

Variable Decoder::variable() {
  const auto wanted = number<std::uint64_t>();
  if (variables_ == nullptr) throw DataLoss("a message from another task has a variable where none can be");
  return variables_->variable(wanted);
}

}  // namespace cohort::rpc
