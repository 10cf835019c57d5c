// The header of an array that NumPy saved [NEP 1, versions 1.0 to 3.0]: a magic string, a length, and a
// Python dictionary with the type, the order and the shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "array_header.h"

namespace cohort::detail {

/// The first bytes, which tell how long the header is.
inline constexpr std::size_t kNpyPreambleBytes = 12;

/// How many bytes come before the elements; more than there are in a damaged file. `start` is the file's
/// start, at least kNpyPreambleBytes of it unless the file is shorter. @throws DataLoss naming `place`.
[[nodiscard]] std::uint64_t npy_header_bytes(std::span<const std::byte> start, const std::string& place);

/// `header` is all that comes before the elements.
/// @throws DataLoss for what no header is; Unimplemented for an array that tensors cannot be.
[[nodiscard]] ArrayHeader parse_npy_header(std::span<const std::byte> header, const std::string& place);

}  // namespace cohort::detail
