// JSON that is written as text. The library that reads it would hold each value in a tree of maps first,
// which takes ten times as long, and files of a checkpoint name many thousand values.
#pragma once

#include <string>
#include <string_view>

#include <cohort/device/shape.h>

namespace cohort::checkpoint {

/// `text` as a string of JSON. @throws InvalidArgument when it is not UTF-8.
[[nodiscard]] std::string quoted(std::string_view text);

/// For example `[2,3]`.
[[nodiscard]] std::string list_of_extents(const Shape& shape);

}  // namespace cohort::checkpoint
