// A structure as the list of its leaves, and back: what reductions see of it.
#pragma once

#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include <cohort/value/structure.h>
#include <cohort/value/tensor_or_slices.h>

namespace cohort {

/// The leaves in the order of for_each_leaf; a number becomes a tensor of shape [].
template <class Structure>
[[nodiscard]] std::vector<TensorOrSlices> to_leaves(const Structure& structure) {
  std::vector<TensorOrSlices> leaves;
  for_each_leaf(
      [&]<class L>(const L& leaf) {
        if constexpr (Element<L>)
          leaves.emplace_back(Tensor::scalar(leaf));
        else
          leaves.emplace_back(leaf);
      },
      structure);
  return leaves;
}

/// `like` with its leaves replaced by `leaves`, in the order of to_leaves.
template <class Structure>
[[nodiscard]] Structure from_leaves(const Structure& like, std::span<const TensorOrSlices> leaves) {
  auto next = leaves.begin();
  return map_structure(
      [&]<class L>(const L&) -> L {
        const TensorOrSlices& leaf = *next++;
        if constexpr (Element<L>)
          return std::get<Tensor>(leaf).item<L>();
        else if constexpr (std::is_same_v<L, TensorOrSlices>)
          return leaf;
        else
          return std::get<L>(leaf);
      },
      like);
}

}  // namespace cohort
