#include <cohort/rpc/detail/codec.h>

#include <array>
#include <cstring>
#include <memory>

namespace cohort::rpc {
namespace {

/// Of the elements at the end of a message; messages begin at a multiple of it.
constexpr std::size_t kEndAlignment = 16;

}  // namespace

void Encoder::tensor_at_end(const Tensor& tensor) {
  number(tensor.dtype());
  shape(tensor.shape());
}

void Encoder::align_end() {
  constexpr std::array<std::byte, kEndAlignment> kZeros{};
  append(std::span(kZeros).first((kEndAlignment - bytes().size() % kEndAlignment) % kEndAlignment));
}

void Encoder::variable(const Variable& variable) {
  if (!variable.state()->is_kept_elsewhere()) {
    throw InvalidArgument(
        "variable '{}' cannot be sent to another task: no parameter server keeps it; make it in the scope of "
        "a ParameterServerStrategy",
        variable.name());
  }
  number(variable.state()->number());
}

Tensor Decoder::tensor_at_end() {
  const DType type = dtype();
  const Shape extents = shape();
  const std::size_t size = bytes_of(extents, type);
  const std::span<const std::byte> bytes = rest_.last(size);
  require_elements(bytes, type);
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
  if (variables_ == nullptr) refuse("has a variable where none can be");
  return variables_->variable(wanted);
}

}  // namespace cohort::rpc
