// The header of an array that NumPy saved [NEP 1, versions 1.0 to 3.0]: a magic string, a length, and a
// Python dictionary with the type, the order and the shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "array_header.h"

namespace cohort::detail {

/// The first bytes, which contain the length of the header.
inline constexpr std::size_t kNpyPreambleBytes = 12;

/// How many bytes come before the elements; in a damaged file this may be more than there are. `start` is the
/// start of the file: at least kNpyPreambleBytes, unless the file is shorter. @throws DataLoss naming
/// `place`.
[[nodiscard]] std::uint64_t npy_header_bytes(std::span<const std::byte> start, const std::string& place);

/// Whether an array of NumPy's, or the beginning of one, is there.
[[nodiscard]] bool begins_npy(std::span<const std::byte> bytes);

/// `header` is everything before the elements.
/// @throws DataLoss for a malformed header; Unimplemented for an array that no tensor can hold.
[[nodiscard]] ArrayHeader parse_npy_header(std::span<const std::byte> header, const std::string& place);

}  // namespace cohort::detail
