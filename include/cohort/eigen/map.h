// Tensors as matrices and vectors of Eigen, and Eigen's as tensors, without a copy in either direction: both
// see the same elements. Header-only, and no part of cohort.h: programs that include it link Eigen
// (Eigen3::Eigen).
//
//     eigen::as_matrix<float>(logits) = eigen::as_matrix<float>(images) * eigen::as_matrix<float>(weights);
//     Tensor gradient = eigen::as_tensor(std::move(matrix));  // a row-major Eigen::Matrix
//
// `T` is the type of the elements, const or not; Eigen::half and Eigen::bfloat16 stand for Cohort's float16
// and bfloat16. A map does not keep the storage alive: some tensor that shares it must outlive it.
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>
#include <cohort/eigen/detail/elements.h>

namespace cohort::eigen {

/// A matrix that lies in memory as a tensor of two axes does, and one of any number of rows and columns is.
template <class T>
using RowMajorMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
using MatrixMap = Eigen::Map<detail::LikeConst<T, RowMajorMatrix<std::remove_const_t<T>>>>;

template <class T>
using VectorMap = Eigen::Map<detail::LikeConst<T, Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, 1>>>;

/// The rows and columns of a CPU tensor of two axes. It lives no longer than the storage, so a temporary is
/// refused.
/// @throws InvalidArgument when `T` is not the tensor's dtype, or it has not two axes.
template <class T>
[[nodiscard]] MatrixMap<T> as_matrix(const Tensor& tensor) {
  if (tensor.shape().rank() != 2) {
    throw InvalidArgument("as_matrix got {}: a matrix has two axes; reshape the tensor, or take as_vector",
                          describe(tensor));
  }
  return {detail::elements_of<T>(tensor), tensor.shape()[0], tensor.shape()[1]};
}
template <class T>
MatrixMap<T> as_matrix(Tensor&& tensor) = delete;

/// All elements of a CPU tensor of any shape, in row-major order, as a column; transposed, as a row.
/// @throws InvalidArgument when `T` is not the tensor's dtype.
template <class T>
[[nodiscard]] VectorMap<T> as_vector(const Tensor& tensor) {
  return {detail::elements_of<T>(tensor), static_cast<Eigen::Index>(tensor.elements())};
}
template <class T>
VectorMap<T> as_vector(Tensor&& tensor) = delete;

/// A tensor over the elements of a matrix, an array, a vector, or a part or map of one: of shape [rows,
/// columns], or [elements] for what is a vector at compile time. A matrix or array that is moved in belongs
/// to the tensor from then on. Otherwise `owner` keeps the memory alive; when null, the caller promises that
/// it outlives every view, and is not resized. A column-major matrix is the transpose of a tensor:
/// `as_tensor(matrix.transpose())`.
/// @throws InvalidArgument when elements of a part do not lie side by side: copy it to a matrix first.
template <class Expression>
[[nodiscard]] Tensor as_tensor(Expression&& expression, std::shared_ptr<void> owner = nullptr) {
  using Matrix = std::remove_cvref_t<Expression>;
  if constexpr (detail::require_tensor_layout<Matrix,
                                              std::is_const_v<std::remove_reference_t<Expression>>>()) {
    if constexpr (!std::is_lvalue_reference_v<Expression> && detail::kOwnsElements<Matrix>) {
      const auto moved = std::make_shared<Matrix>(std::forward<Expression>(expression));
      return as_tensor(*moved, moved);
    } else {
      detail::require_dense(expression);
      const std::span values(detail::stored(expression.data()), static_cast<std::size_t>(expression.size()));
      return Tensor::wrap(values, detail::shape_of(expression), std::move(owner));
    }
  } else {
    return {};
  }
}

}  // namespace cohort::eigen
