// Files that are compressed as a whole, which no reader here unpacks.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "mapped_file.h"

namespace cohort::detail {

/// For the end of a message on a file that is not what it should be: that it is compressed, if its `start`
/// is that of such a file, and what to do; otherwise `otherwise`.
[[nodiscard]] std::string_view compression_hint(std::span<const std::byte> start, std::string_view otherwise);
[[nodiscard]] std::string_view compression_hint(MappedFile& file, std::string_view otherwise);

}  // namespace cohort::detail
