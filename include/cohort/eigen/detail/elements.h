// How elements of Eigen's types lie in memory, beside a tensor's. Behind eigen/map.h and eigen/tensor_map.h.
#pragma once

#include <type_traits>

#include <Eigen/Core>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>

namespace cohort::eigen::detail {

/// `U`, const where `T` is.
template <class T, class U>
using LikeConst = std::conditional_t<std::is_const_v<T>, const U, U>;

/// The type in which tensors store a T. Eigen's two types of 16 bits have the same bits as Cohort's.
template <class T>
struct StoredAs : std::type_identity<T> {};
template <>
struct StoredAs<Eigen::half> : std::type_identity<float16> {};
template <>
struct StoredAs<Eigen::bfloat16> : std::type_identity<bfloat16> {};

template <class T>
using Stored = LikeConst<T, typename StoredAs<std::remove_const_t<T>>::type>;

/// @throws InvalidArgument when `T` is not the tensor's dtype.
template <class T>
T* elements_of(const Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.span<Stored<T>>().data());
}

template <class T>
Stored<T>* stored(T* elements) {
  return reinterpret_cast<Stored<T>*>(elements);
}

/// Whatever of Eigen has rows and columns.
template <class Matrix>
concept Dense = requires(const Matrix& matrix) {
  []<class Derived>(const Eigen::DenseBase<Derived>&) {}(matrix);
};

/// A matrix or an array, other than a view of one.
template <class Matrix>
inline constexpr bool kOwnsElements = std::is_base_of_v<Eigen::PlainObjectBase<Matrix>, Matrix>;

/// Says in one sentence why a tensor cannot lie over such an expression.
template <class Matrix, bool kConst>
constexpr bool require_tensor_layout() {
  if constexpr (!Dense<Matrix>) {
    static_assert(kConst && !kConst,
                  "as_tensor takes matrices, arrays and vectors of Eigen, or parts of them");
    return false;
  } else {
    constexpr bool kHasMemory = (Matrix::Flags & Eigen::DirectAccessBit) != 0;
    constexpr bool kWritable = !kHasMemory || (!kConst && (Matrix::Flags & Eigen::LvalueBit) != 0);
    constexpr bool kRowMajor = !kHasMemory || Matrix::IsVectorAtCompileTime || Matrix::IsRowMajor;
    static_assert(kHasMemory,
                  "an expression of Eigen has no elements yet: assign it to a matrix, and pass that");
    static_assert(kWritable, "a tensor may be written to: pass a matrix that is not const, or move it in");
    static_assert(kRowMajor, "tensors are row-major: use Eigen::RowMajor, or pass matrix.transpose()");
    return kHasMemory && kWritable && kRowMajor;
  }
}

/// @throws InvalidArgument when there are gaps between the elements.
template <class Matrix>
void require_dense(const Matrix& matrix) {
  const bool line = Matrix::IsVectorAtCompileTime || matrix.rows() <= 1;
  if ((matrix.size() <= 1 || matrix.innerStride() == 1) && (line || matrix.outerStride() == matrix.cols()))
    return;
  throw InvalidArgument(
      "as_tensor got a part of a matrix, [{}, {}], whose elements do not lie side by side (strides {} and "
      "{}); "
      "copy it to a matrix first",
      matrix.rows(), matrix.cols(), matrix.outerStride(), matrix.innerStride());
}

template <class Matrix>
Shape shape_of(const Matrix& matrix) {
  if constexpr (Matrix::IsVectorAtCompileTime)
    return {matrix.size()};
  else
    return {matrix.rows(), matrix.cols()};
}

}  // namespace cohort::eigen::detail
