#include <cohort/device/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>

#include <fmt/format.h>

#include "device_runtime.h"

namespace cohort {

namespace {

// All default-constructed tensors share one buffer of no elements, so that making one costs no allocation.
const std::shared_ptr<const Buffer>& empty_buffer() {
  static const std::shared_ptr<const Buffer> buffer = allocate(0, Device());
  return buffer;
}

}  // namespace

Tensor::Tensor() : Tensor(empty_buffer(), 0, {0}, DType::kFloat32) {}

Tensor::Tensor(std::shared_ptr<const Buffer> buffer, std::size_t byte_offset, Shape shape, DType dtype)
    : buffer_(std::move(buffer)), byte_offset_(byte_offset), shape_(shape), dtype_(dtype) {}

Tensor Tensor::uninitialized(Shape shape, DType dtype, Device device) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(shape.elements(), size_of(dtype), &bytes)) {
    throw InvalidArgument("{}{} is larger than the address space", to_string(dtype), to_string(shape));
  }
  return {allocate(bytes, device), 0, shape, dtype};
}

Tensor Tensor::zeros(Shape shape, DType dtype, Device device) {
  Tensor tensor = uninitialized(shape, dtype, device);
  if (is_cpu(device))
    std::memset(tensor.data(), 0, tensor.bytes());
  else
    tensor.fill(0);
  return tensor;
}

Tensor Tensor::full(Shape shape, DType dtype, double value, Device device) {
  Tensor tensor = uninitialized(shape, dtype, device);
  tensor.fill(value);
  return tensor;
}

Tensor Tensor::wrap(std::shared_ptr<const Buffer> buffer, std::size_t byte_offset, Shape shape, DType dtype) {
  if (buffer == nullptr) throw InvalidArgument("cannot make a tensor over a null buffer");
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(shape.elements(), size_of(dtype), &bytes) || byte_offset > buffer->bytes() ||
      bytes > buffer->bytes() - byte_offset) {
    throw InvalidArgument("{}{} at byte {} does not fit in a buffer of {} bytes", to_string(dtype),
                          to_string(shape), byte_offset, buffer->bytes());
  }
  const auto address = reinterpret_cast<std::uintptr_t>(buffer->data()) + byte_offset;
  if (bytes > 0 && address % size_of(dtype) != 0) {
    throw InvalidArgument("the memory at byte {} is not aligned for {}; copy it first", byte_offset,
                          to_string(dtype));
  }
  return {std::move(buffer), byte_offset, shape, dtype};
}

void Tensor::throw_not_on_cpu(const char* operation) const {
  throw InvalidArgument("{}() needs a CPU tensor, but {} lies on {}; copy it with to(cpu) first", operation,
                        describe(*this), to_string(device()));
}

void Tensor::require_count(std::size_t values, const Shape& shape) {
  if (values == shape.elements()) return;
  throw InvalidArgument("{} values do not fill shape {} of {} elements", values, to_string(shape),
                        shape.elements());
}

void Tensor::throw_wrong_dtype(DType wanted) const {
  throw InvalidArgument("the elements of {} are not {}; use the right type or cast({})", describe(*this),
                        to_string(wanted), to_string(wanted));
}

void Tensor::throw_not_one_element() const {
  throw InvalidArgument("item() needs exactly one element, but {} has {}", describe(*this), elements());
}

Tensor Tensor::reshape(std::initializer_list<std::int64_t> extents) const {
  std::vector<std::int64_t> resolved(extents);
  const auto open = std::find(resolved.begin(), resolved.end(), -1);
  if (open != resolved.end()) {
    *open = 1;
    const std::size_t known = Shape(resolved).elements();
    if (known == 0 || elements() % known != 0 || std::find(open + 1, resolved.end(), -1) != resolved.end()) {
      throw InvalidArgument("cannot reshape {} to [{}]: the extent -1 cannot be computed", describe(*this),
                            fmt::join(extents, ", "));
    }
    *open = static_cast<std::int64_t>(elements() / known);
  }
  return reshape(Shape(resolved));
}

Tensor Tensor::reshape(Shape shape) const {
  if (shape.elements() != elements()) {
    throw InvalidArgument("cannot reshape {} to {}: {} elements against {}", describe(*this),
                          to_string(shape), elements(), shape.elements());
  }
  return {buffer_, byte_offset_, shape, dtype_};
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  const Shape row_shape = shape_.row();
  if (begin < 0 || begin > end || end > shape_[0]) {
    throw InvalidArgument("rows {} to {} do not lie within {}, which has {} rows", begin, end,
                          describe(*this), shape_[0]);
  }
  const std::size_t row_bytes = row_shape.elements() * size_of(dtype_);
  return {buffer_, byte_offset_ + static_cast<std::size_t>(begin) * row_bytes, shape_.with(0, end - begin),
          dtype_};
}

Tensor Tensor::row(std::int64_t index) const {
  const std::int64_t count = shape_.rank() == 0 ? 0 : shape_[0];
  const std::int64_t resolved = index < 0 ? index + count : index;
  if (resolved < 0 || resolved >= count) {
    throw InvalidArgument("row {} is out of range: {} has {} rows", index, describe(*this), count);
  }
  return rows(resolved, resolved + 1).reshape(shape_.row());
}

void Tensor::copy_from(const Tensor& source) const {
  if (source.dtype_ != dtype_ || source.shape_ != shape_) {
    throw InvalidArgument("cannot copy {} into {}: dtype and shape must agree", describe(source),
                          describe(*this));
  }
  if (bytes() == 0) return;
  if (is_cpu(*this) && is_cpu(source)) {
    // memmove, because source and destination may be overlapping views of one storage.
    std::memmove(data(), source.data(), bytes());
    return;
  }
  DeviceRuntime& runtime = runtime_of(is_cpu(*this) ? source.device() : device());
  runtime.copy({.to = data(),
                .to_device = device(),
                .from = source.data(),
                .from_device = source.device(),
                .width = bytes()});
}

void Tensor::fill(double value) const {
  if (!is_cpu(*this)) return runtime_of(device()).fill(*this, value);
  visit_dtype(dtype_, [&]<class T>(std::type_identity<T>) {
    std::fill_n(reinterpret_cast<T*>(data()), elements(), convert_element<T>(value));
  });
}

Tensor Tensor::clone() const {
  Tensor copy = uninitialized(shape_, dtype_, device());
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return *this;
  Tensor copy = uninitialized(shape_, dtype_, device);
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::on_host() const { return is_cpu(*this) ? *this : to(Device()); }

Tensor Tensor::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor result = uninitialized(shape_, dtype, device());
  if (!is_cpu(*this)) {
    runtime_of(device()).cast(*this, result);
    return result;
  }
  visit_dtype(dtype_, [&]<class From>(std::type_identity<From>) {
    visit_dtype(dtype, [&]<class To>(std::type_identity<To>) {
      const std::span<const From> source = span<From>();
      std::transform(source.begin(), source.end(), result.span<To>().begin(), convert_element<To, From>);
    });
  });
  return result;
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{}{}", to_string(tensor.dtype()), to_string(tensor.shape()));
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  constexpr std::size_t kShown = 8;
  stream << describe(tensor) << " {";
  visit_dtype(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    const Tensor readable = tensor.on_host();
    const std::span<const T> values = readable.span<T>();
    for (std::size_t i = 0; i < std::min(values.size(), kShown); ++i) {
      const auto value = convert_element<double>(values[i]);
      stream << (i == 0 ? "" : ", ") << (std::isnan(value) ? std::abs(value) : value);  // no "-nan"
    }
    if (values.size() > kShown) stream << ", ...";
  });
  return stream << "}";
}

bool bitwise_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.bytes() == 0) return true;
  const Tensor left = a.on_host();
  const Tensor right = b.on_host();
  return std::memcmp(left.data(), right.data(), left.bytes()) == 0;
}

}  // namespace cohort
