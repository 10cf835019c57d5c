// The safetensors format (https://github.com/huggingface/safetensors, "Format"): the length of the header in
// 8 bytes, least significant first; the header, JSON that names dtype, shape and place of each tensor; their
// elements one after the other, without gaps. Everything in a header may be wrong, and is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

#include "file.h"

namespace cohort::checkpoint {

/// Where a tensor of a file is.
///
/// The format has elements that tensors here do not: floats of 8, 6 and 4 bits, and complex numbers. They
/// are told as what they consist of: bytes, whose last axis is shorter where several elements share one, and
/// float32 with one more axis, of 2.
struct TensorPlace {
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::uint64_t begin = 0;        ///< of its first byte in the file
  std::string_view foreign = {};  ///< what the format calls such elements, as F8_E4M3; empty for others

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

/// The same in two steps, for a file that is read in another way: of how many bytes the header is, which
/// the file's first 8 tell and which follow these, and what it says. @throws DataLoss.
inline constexpr std::size_t kHeaderLengthBytes = 8;
[[nodiscard]] std::uint64_t header_length(std::span<const std::byte> first, std::uint64_t file_size,
                                          const std::string& path);
[[nodiscard]] SafetensorsHeader parse_header(std::string_view text, std::uint64_t file_size,
                                             const std::string& path);

/// What the format calls a dtype, as BF16.
[[nodiscard]] std::string_view safetensors_name(DType dtype) noexcept;

/// The file of each tensor by an index, `weight_map`, of several files in one folder. @throws DataLoss that
/// begins with `path` for a text that is no index, and for files that may be elsewhere.
[[nodiscard]] std::map<std::string, std::string> parse_index(std::string_view text, const std::string& path);

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
