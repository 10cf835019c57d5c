// JSON in files that may be damaged, or made to do harm.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace cohort::checkpoint {

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
