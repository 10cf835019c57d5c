// JSON that people write into variables and files: read with an error that says where it is wrong, and quoted
// in errors.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

namespace cohort {

/// @throws InvalidArgument that begins with `what`, says where the text is wrong, and ends with `form`.
[[nodiscard]] inline nlohmann::json parse_json(std::string_view text, std::string_view what,
                                               std::string_view form) {
  // Descriptions of clusters are a few levels deep; writing much deeper ones would overflow the stack.
  constexpr int kDeepest = 32;
  const auto refuse_depth = [&](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    if (depth > kDeepest)
      throw InvalidArgument("{} is nested more than {} levels deep; write {}", what, kDeepest, form);
    return true;
  };
  try {
    return nlohmann::json::parse(text, refuse_depth);
  } catch (const nlohmann::json::parse_error& error) {
    throw InvalidArgument("{} is not JSON at byte {}; write {}", what, error.byte, form);
  } catch (const nlohmann::json::exception&) {
    throw InvalidArgument("{} has a number that is too large; write {}", what, form);
  }
}

/// The value as text, cut off if it is long.
[[nodiscard]] inline std::string quote(const nlohmann::json& value) {
  constexpr std::size_t kLongest = 200;
  std::string text = value.dump(-1, ' ', true);  // escapes keep a cut text valid
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace cohort
