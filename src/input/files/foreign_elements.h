// Elements whose bytes were written by another program, perhaps on another machine.
#pragma once

#include <cstdint>
#include <string>

#include <cohort/device/tensor.h>

namespace cohort::detail {

/// Reverses the bytes of each element.
void swap_bytes(const Tensor& tensor);

/// Refuses bytes other than 0 and 1 in a bool tensor, since reading them as bool is undefined. `offset` is
/// where the tensor lies in the file. @throws DataLoss naming the byte.
void require_valid_elements(const Tensor& tensor, const std::string& path, std::uint64_t offset);

}  // namespace cohort::detail
