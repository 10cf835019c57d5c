// A Tensor is shape + dtype + device + shared storage, contiguous in row-major order.
// It is a handle: copying one is cheap and both copies see the same elements; use
// `clone()` for new storage. Row slices and reshapes are views of the same storage.
//
// Elements of CPU tensors are reached through `span<T>()`; the dtype is checked. Operations on GPU tensors
// are queued on the GPU, in order; a copy to a CPU waits for them. Different threads may
// use one tensor as they may use one array: readers together, a writer alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

#include <cohort/base/error.h>
#include <cohort/device/allocator.h>
#include <cohort/device/device.h>
#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

namespace cohort {

class Tensor {
 public:
  /// An empty float32 tensor of shape [0].
  Tensor();

  /// Uninitialised elements. @throws Unavailable when memory is short.
  [[nodiscard]] static Tensor uninitialized(Shape shape, DType dtype, Device device = {});
  [[nodiscard]] static Tensor zeros(Shape shape, DType dtype, Device device = {});
  [[nodiscard]] static Tensor full(Shape shape, DType dtype, double value, Device device = {});

  /// A copy of `values` with the given shape. @throws InvalidArgument when the counts differ.
  template <Element T>
  [[nodiscard]] static Tensor from(std::span<const T> values, const Shape& shape, Device device = {});
  template <Element T>
  [[nodiscard]] static Tensor from(std::initializer_list<T> values);

  /// One element of the argument's own type: float64 of `1.0`, float32 of `1.0F`.
  template <Element T>
  [[nodiscard]] static Tensor scalar(T value, Device device = {});

  /// A tensor over memory of the caller's, without a copy. `owner` keeps it alive; when null, the caller
  /// promises that the memory outlives every view and every collective on it: after a failed one, until all
  /// members have left the communicator, since others may still write there.
  template <Element T>
  [[nodiscard]] static Tensor wrap(std::span<T> values, Shape shape, std::shared_ptr<void> owner = nullptr);
  [[nodiscard]] static Tensor wrap(std::shared_ptr<const Buffer> buffer, std::size_t byte_offset, Shape shape,
                                   DType dtype);

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] Device device() const noexcept { return buffer_->device(); }
  [[nodiscard]] std::size_t elements() const noexcept { return shape_.elements(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return elements() * size_of(dtype_); }

  /// The elements of a CPU tensor. @throws InvalidArgument when `T` is not the tensor's dtype.
  template <Element T>
  [[nodiscard]] std::span<T> span() const;

  /// The elements as raw bytes; the bytes of a GPU tensor are not host memory.
  [[nodiscard]] std::span<std::byte> raw() const noexcept { return {data(), bytes()}; }
  [[nodiscard]] std::byte* data() const noexcept { return buffer_->data() + byte_offset_; }

  /// The only element, converted to `T`. @throws InvalidArgument unless there is exactly one.
  template <Element T>
  [[nodiscard]] T item() const;

  /// A view with another shape; one extent may be -1 and is then computed.
  /// @throws InvalidArgument when the number of elements differs.
  [[nodiscard]] Tensor reshape(std::initializer_list<std::int64_t> extents) const;
  [[nodiscard]] Tensor reshape(Shape shape) const;

  /// A view of rows `begin` to `end-1` along the outermost axis.
  /// @throws InvalidArgument when the range does not lie within the tensor.
  [[nodiscard]] Tensor rows(std::int64_t begin, std::int64_t end) const;

  /// A view of one row, without the outermost axis; negative rows count from the end.
  [[nodiscard]] Tensor row(std::int64_t index) const;

  /// Overwrites the elements with those of `source`.
  /// @throws InvalidArgument when dtype or shape differ.
  void copy_from(const Tensor& source) const;
  void fill(double value) const;

  /// New storage with the same elements.
  [[nodiscard]] Tensor clone() const;

  /// This tensor if it already lies on `device`, otherwise a copy there.
  [[nodiscard]] Tensor to(Device device) const;

  /// This tensor if it lies on a CPU, whichever, otherwise a copy on cpu:0.
  [[nodiscard]] Tensor on_host() const;

  /// This tensor if it already has `dtype`, otherwise a converted copy.
  [[nodiscard]] Tensor cast(DType dtype) const;

  /// Shared ownership of the storage, for code that passes it on (collectives, DLPack).
  [[nodiscard]] const std::shared_ptr<const Buffer>& buffer() const noexcept { return buffer_; }

 private:
  Tensor(std::shared_ptr<const Buffer> buffer, std::size_t byte_offset, Shape shape, DType dtype);
  void require_cpu(const char* operation) const;
  [[noreturn]] void throw_wrong_dtype(DType wanted) const;
  [[noreturn]] void throw_not_one_element() const;

  std::shared_ptr<const Buffer> buffer_;
  std::size_t byte_offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::kFloat32;
};

/// For example `float32[64, 10]`: what messages call a tensor.
[[nodiscard]] std::string describe(const Tensor& tensor);

/// The description and the first elements.
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

[[nodiscard]] inline bool is_cpu(const Tensor& tensor) noexcept { return is_cpu(tensor.device()); }

/// True when dtype, shape and every byte agree.
[[nodiscard]] bool bitwise_equal(const Tensor& a, const Tensor& b);

// ---- implementation of the templates ----

template <Element T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape, Device device) {
  if (values.size() != shape.elements()) {
    throw InvalidArgument("{} values do not fill shape {} of {} elements", values.size(), to_string(shape),
                          shape.elements());
  }
  Tensor tensor = uninitialized(shape, kDTypeOf<T>, device.kind() == DeviceKind::kCpu ? device : Device());
  std::copy(values.begin(), values.end(), tensor.span<T>().begin());
  return tensor.to(device);
}

template <Element T>
Tensor Tensor::from(std::initializer_list<T> values) {
  return from(std::span<const T>(values.begin(), values.size()), {static_cast<std::int64_t>(values.size())});
}

template <Element T>
Tensor Tensor::scalar(T value, Device device) {
  return from(std::span<const T>(&value, 1), Shape{}, device);
}

template <Element T>
Tensor Tensor::wrap(std::span<T> values, Shape shape, std::shared_ptr<void> owner) {
  static_assert(!std::is_const_v<T>,
                "a tensor may be written to: wrap mutable memory, or copy with Tensor::from");
  if (values.size() != shape.elements()) {
    throw InvalidArgument("{} values do not fill shape {} of {} elements", values.size(), to_string(shape),
                          shape.elements());
  }
  auto* data = reinterpret_cast<std::byte*>(values.data());
  return wrap(std::make_shared<const Buffer>(data, values.size_bytes(), Device(), std::move(owner)), 0, shape,
              kDTypeOf<T>);
}

template <Element T>
std::span<T> Tensor::span() const {
  require_cpu("span");
  if (dtype_ != kDTypeOf<T>) throw_wrong_dtype(kDTypeOf<T>);
  return {reinterpret_cast<T*>(data()), elements()};
}

template <Element T>
T Tensor::item() const {
  require_cpu("item");
  if (elements() != 1) throw_not_one_element();
  return visit_dtype(dtype_, [&]<class From>(std::type_identity<From>) {
    return convert_element<T>(*reinterpret_cast<const From*>(data()));
  });
}

}  // namespace cohort
