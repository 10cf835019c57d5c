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
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/device/allocator.h>
#include <cohort/device/device.h>
#include <cohort/device/dtype.h>
#include <cohort/device/owning_span.h>
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

  /// A copy of `values`, a vector, an array, a span or another contiguous range of numbers, with the given
  /// shape. @throws InvalidArgument when the counts differ.
  template <std::ranges::range Values>
  [[nodiscard]] static Tensor from(const Values& values, const Shape& shape, Device device = {});
  template <Element T>
  [[nodiscard]] static Tensor from(std::span<const T> values, const Shape& shape, Device device = {});

  /// The same with one axis.
  template <std::ranges::range Values>
  [[nodiscard]] static Tensor from(const Values& values);
  template <class T>
  [[nodiscard]] static Tensor from(std::initializer_list<T> values);

  /// A number, with the shape []: float64 for `1.0`, float32 for `1.0F`.
  template <class T>
  [[nodiscard]] static Tensor scalar(T value, Device device = {});

  /// A tensor over memory of the caller's, without a copy. `owner` keeps it alive; when null, the caller
  /// promises that the memory outlives every view and every collective on it: after a failed one, until all
  /// members have left the communicator, since others may still write there.
  template <class T>
  [[nodiscard]] static Tensor wrap(std::span<T> values, Shape shape, std::shared_ptr<void> owner = nullptr);
  [[nodiscard]] static Tensor wrap(std::shared_ptr<const Buffer> buffer, std::size_t byte_offset, Shape shape,
                                   DType dtype);

  [[nodiscard]] const Shape& shape() const& noexcept { return shape_; }
  [[nodiscard]] Shape shape() && noexcept { return shape_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] Device device() const noexcept { return buffer_->device(); }
  [[nodiscard]] std::size_t elements() const noexcept { return shape_.elements(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return elements() * size_of(dtype_); }

  /// The elements of a CPU tensor, valid as long as a tensor shares the storage; those of a temporary share
  /// it themselves. @throws InvalidArgument when `T` is not the tensor's dtype.
  template <class T>
  [[nodiscard]] std::span<T> span() const&;
  template <class T>
  [[nodiscard]] OwningSpan<T> span() &&;

  /// The elements as raw bytes; the bytes of a GPU tensor are not host memory.
  [[nodiscard]] std::span<std::byte> raw() const& noexcept { return {data(), bytes()}; }
  [[nodiscard]] OwningSpan<std::byte> raw() && noexcept { return {raw(), std::move(buffer_)}; }

  /// The first of these bytes. Of a temporary, too: the storage lives as long as another tensor shares it.
  [[nodiscard]] std::byte* data() const noexcept { return buffer_->data() + byte_offset_; }

  /// The only element, converted to `T`. @throws InvalidArgument unless there is exactly one.
  template <class T>
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
  [[nodiscard]] const std::shared_ptr<const Buffer>& buffer() const& noexcept { return buffer_; }
  [[nodiscard]] std::shared_ptr<const Buffer> buffer() && noexcept { return std::move(buffer_); }

 private:
  Tensor(std::shared_ptr<const Buffer> buffer, std::size_t byte_offset, Shape shape, DType dtype);
  static void require_count(std::size_t values, const Shape& shape);
  void require_cpu(const char* operation) const {
    if (device().kind() != DeviceKind::kCpu) [[unlikely]]
      throw_not_on_cpu(operation);
  }
  [[noreturn]] void throw_not_on_cpu(const char* operation) const;
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

namespace detail {

/// Says in one sentence what is wrong with a type of elements.
template <class T>
constexpr bool require_element() {
  constexpr bool kElement = Element<T>;
  static_assert(
      kElement,
      "tensors have no elements of this type: use float, double, bool, an integer, float16 or bfloat16");
  return kElement;
}

/// The same for elements that are used where they are.
template <class T>
constexpr bool require_stored_element() {
  if constexpr (Element<T>) {
    constexpr bool kStored = std::is_same_v<StoredElement<T>, std::remove_cv_t<T>>;
    static_assert(kStored, "memory of tensors holds std::int64_t and std::uint64_t: use these for long long");
    return kStored;
  } else {
    return require_element<T>();
  }
}

}  // namespace detail

template <Element T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape, Device device) {
  require_count(values.size(), shape);
  Tensor tensor = uninitialized(shape, kDTypeOf<T>, device.kind() == DeviceKind::kCpu ? device : Device());
  std::ranges::copy(values, tensor.span<StoredElement<T>>().begin());
  return tensor.to(device);
}

template <std::ranges::range Values>
Tensor Tensor::from(const Values& values, const Shape& shape, Device device) {
  using T = std::ranges::range_value_t<Values>;
  constexpr bool kPacked = std::is_same_v<Values, std::vector<bool>>;
  constexpr bool kContiguous = std::ranges::contiguous_range<const Values>;
  static_assert(!kPacked, "vector<bool> has no elements to copy: use std::array<bool, N>, or another type");
  static_assert(kContiguous || kPacked,
                "Tensor::from copies a vector, an array or a span: copy other ranges to a vector first");
  // The second condition is for elements of a contiguous range.
  if constexpr (!kContiguous)
    return {};  // NOLINT(bugprone-branch-clone)
  else if constexpr (!detail::require_element<T>())
    return {};
  else
    return from(std::span<const T>(values), shape, device);
}

template <std::ranges::range Values>
Tensor Tensor::from(const Values& values) {
  return from(values, {static_cast<std::int64_t>(std::ranges::distance(values))});
}

template <class T>
Tensor Tensor::from(std::initializer_list<T> values) {
  return from(std::span<const T>(values.begin(), values.size()));
}

template <class T>
Tensor Tensor::scalar(T value, Device device) {
  return from(std::span<const T>(&value, 1), Shape{}, device);
}

template <class T>
Tensor Tensor::wrap(std::span<T> values, Shape shape, std::shared_ptr<void> owner) {
  constexpr bool kWritable = !std::is_const_v<T>;
  static_assert(kWritable, "a tensor may be written to: wrap mutable memory, or copy with Tensor::from");
  if constexpr (kWritable && detail::require_stored_element<T>()) {
    require_count(values.size(), shape);
    auto* data = reinterpret_cast<std::byte*>(values.data());
    return wrap(std::make_shared<const Buffer>(data, values.size_bytes(), Device(), std::move(owner)), 0,
                shape, kDTypeOf<T>);
  } else {
    return {};
  }
}

template <class T>
std::span<T> Tensor::span() const& {
  if constexpr (detail::require_stored_element<T>()) {
    require_cpu("span");
    if (dtype_ != kDTypeOf<T>) throw_wrong_dtype(kDTypeOf<T>);
    return {reinterpret_cast<T*>(data()), elements()};
  } else {
    return {};
  }
}

template <class T>
OwningSpan<T> Tensor::span() && {
  return {span<T>(), std::move(buffer_)};
}

template <class T>
T Tensor::item() const {
  if constexpr (detail::require_element<T>()) {
    require_cpu("item");
    if (elements() != 1) throw_not_one_element();
    return visit_dtype(dtype_, [&]<class From>(std::type_identity<From>) {
      return convert_element<T>(*reinterpret_cast<const From*>(data()));
    });
  } else {
    return {};
  }
}

}  // namespace cohort
