// Tensors with any number of axes as Eigen::Tensor, without a copy: for convolutions, contractions and
// shuffles of axes. Eigen keeps that class among its unsupported modules, which Debian's libeigen3-dev has;
// what is said in eigen/map.h holds here, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <unsupported/Eigen/CXX11/Tensor>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>
#include <cohort/eigen/detail/elements.h>

namespace cohort::eigen {

template <class T, int kRank>
using TensorMap = Eigen::TensorMap<
    detail::LikeConst<T, Eigen::Tensor<std::remove_const_t<T>, kRank, Eigen::RowMajor, std::int64_t>>>;

/// A CPU tensor of `kRank` axes. It lives no longer than the storage, so a temporary is refused.
/// @throws InvalidArgument when `T` is not the tensor's dtype, or it has another number of axes.
template <class T, int kRank>
[[nodiscard]] TensorMap<T, kRank> as_tensor_map(const Tensor& tensor) {
  if (tensor.shape().rank() != kRank) {
    throw InvalidArgument("as_tensor_map got {}, which has not {} axes; reshape the tensor", describe(tensor),
                          kRank);
  }
  std::array<std::int64_t, static_cast<std::size_t>(kRank)> extents{};
  for (int axis = 0; axis < kRank; ++axis) extents[static_cast<std::size_t>(axis)] = tensor.shape()[axis];
  return {detail::elements_of<T>(tensor), extents};
}
template <class T, int kRank>
TensorMap<T, kRank> as_tensor_map(Tensor&& tensor) = delete;

}  // namespace cohort::eigen
