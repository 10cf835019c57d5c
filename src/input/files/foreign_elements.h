// Elements whose bytes were written by another program, maybe on another machine.
#pragma once

#include <cstdint>
#include <string>

#include <cohort/device/tensor.h>

namespace cohort::detail {

/// Reverses the bytes of each element.
void swap_bytes(const Tensor& tensor);

/// A byte that is neither 0 nor 1 is no bool, and reading it as one is undefined. `offset` is where the
/// tensor lies in the file. @throws DataLoss naming the byte.
void require_valid_elements(const Tensor& tensor, const std::string& path, std::uint64_t offset);

}  // namespace cohort::detail
