// JSON in files of a checkpoint. It is written as text: the library that reads it would hold each value in a
// tree of maps first, which takes ten times as long, and files of a checkpoint name many thousand values.
// Files that are read may be damaged, or made to do harm.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <cohort/device/shape.h>

namespace cohort::checkpoint {

/// `text` as a string of JSON. @throws InvalidArgument when it is not UTF-8.
[[nodiscard]] std::string quoted(std::string_view text);

/// For example `[2,3]`.
[[nodiscard]] std::string list_of_extents(const Shape& shape);

/// @throws DataLoss for text that is no JSON, for two members of one name, of which a parser would keep one,
/// and for values nested so deeply that writing them again would overflow the stack.
void require_plain_json(const std::string& text, std::string_view what);

/// Parses `text`; `what` is what messages call it. @throws as require_plain_json.
template <class Json>
Json parse_json(const std::string& text, std::string_view what) {
  require_plain_json(text, what);
  return Json::parse(text);
}

}  // namespace cohort::checkpoint
