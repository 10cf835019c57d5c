// Sums of the squares of gradients, block by block: a block is so many elements of one variable, counted from
// its first element. The sums of all blocks, added in the order of the variables, have the same bits wherever
// each block was summed; so a norm over all gradients does not depend on which worker has which part of them.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/device/tensor.h>

namespace cohort {

inline constexpr std::size_t kSquaresBlock = 1024;  ///< elements

[[nodiscard]] constexpr std::size_t blocks_of(std::size_t elements) noexcept {
  return (elements + kSquaresBlock - 1) / kSquaresBlock;
}

/// The sum of each block of a floating CPU tensor that begins where a block does; as many as `blocks_of`
/// says.
void block_squares(const Tensor& gradient, std::span<double> sums);

}  // namespace cohort
