// The safetensors format (https://github.com/huggingface/safetensors, "Format"): the length of the header in
// 8 bytes, least significant first; the header, JSON that names dtype, shape and place of each tensor; their
// elements one after the other, without gaps. Everything in a header may be wrong, and is checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

#include "file.h"

namespace cohort::checkpoint {

/// Where a tensor of a file is.
struct TensorPlace {
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::uint64_t begin = 0;  ///< of its first byte in the file

  [[nodiscard]] std::uint64_t bytes() const { return shape.elements() * size_of(dtype); }
};

struct SafetensorsHeader {
  std::unordered_map<std::string, TensorPlace> tensors = {};
  std::map<std::string, std::string> metadata = {};
};

/// @throws Unavailable when the file cannot be read; DataLoss naming the file and the tensor for a header
/// that is none, unknown dtypes, shapes that do not fit their places, and places that overlap, leave gaps or
/// do not end with the file.
[[nodiscard]] SafetensorsHeader read_header(const InputFile& file);

/// A tensor of a file that is to be written.
struct NamedTensor {
  std::string name = {};
  DType dtype = DType::kFloat32;
  Shape shape = {};
};

/// Sorts `tensors` into the order in which their elements follow each other: those of larger elements first,
/// so that all of them are aligned. Returns the beginning of the file up to the first element.
/// @throws InvalidArgument for two of one name, and names that are not UTF-8.
[[nodiscard]] std::string begin_safetensors(std::vector<NamedTensor>& tensors,
                                            const std::map<std::string, std::string>& metadata);

}  // namespace cohort::checkpoint
