// JSON that people write into variables and files: read with an error that says where it is
// wrong, and quoted in errors.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace cohort {

/// @throws InvalidArgument that begins with `what`, says where the text is wrong, and ends with `form`.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, std::string_view what, std::string_view form);

/// The value as text, cut off if it is long.
[[nodiscard]] std::string quote(const nlohmann::json& value);

}  // namespace cohort
