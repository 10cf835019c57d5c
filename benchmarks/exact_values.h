// Inputs whose reduction is known exactly, whatever the order of association, and whose
// every partial result is exact in the dtype itself, the 16-bit floats included. A result
// therefore has one right bit pattern per element, and each wrong element is a bug.
//
// The values repeat with a prime period, so that blocks that were swapped or shifted do not
// look right. Repeating also makes writing an input as cheap as a program writing its
// gradients: from a small table, straight into the caches of the core that writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cohort/collective/reduce_op.h>
#include <cohort/device/dtype.h>

namespace cohort::bench {

/// The inputs of one member, and what reducing those of all members gives.
class ExactValues {
 public:
  static constexpr std::size_t kPeriod = 1021;

  /// `op` is legal for `dtype`.
  ExactValues(DType dtype, ReduceOp op, int member, int members);

  /// Fills `input`, a whole number of elements, with this member's values.
  void write(std::span<std::byte> input) const;

  /// How many elements of `result` differ from the reduction of all members' inputs.
  [[nodiscard]] std::uint64_t count_wrong(std::span<const std::byte> result) const;

 private:
  std::size_t element_bytes_;
  std::vector<std::byte> inputs_;    ///< one period of this member's values
  std::vector<std::byte> expected_;  ///< one period of the result
};

}  // namespace cohort::bench
