// Files that are compressed as a whole, which no reader here unpacks.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "mapped_file.h"

namespace cohort::detail {

/// For the end of a message about a file of a wrong format: says that the file is compressed, and what to do,
/// if its `start` is that of such a file; otherwise `otherwise`.
[[nodiscard]] std::string_view compression_hint(std::span<const std::byte> start, std::string_view otherwise);
[[nodiscard]] std::string_view compression_hint(MappedFile& file, std::string_view otherwise);

}  // namespace cohort::detail
