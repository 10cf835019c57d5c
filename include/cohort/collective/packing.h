// Many tensors in one: tensors of one dtype are copied side by side into one flat
// tensor, so that a collective pays its latency once. The flat tensor is the storage of
// the results: `views` are its pieces in their original shapes, so nothing is unpacked.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <cohort/device/tensor.h>

namespace cohort {

struct PackedTensors {
  std::vector<Tensor> flats;  ///< one per dtype, in order of first appearance
  std::vector<Tensor> views;  ///< one per input, in input order
  std::uint64_t layout = 0;   ///< fingerprint of all shapes and dtypes
};

/// Copies `tensors`; the inputs are left alone.
[[nodiscard]] PackedTensors pack(std::span<const Tensor> tensors);

}  // namespace cohort
