// JSON in files that may be damaged, or made to do harm.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

namespace cohort::checkpoint {

/// Parses `text`; `what` is what messages call it.
/// @throws DataLoss for text that is no JSON, for two members of one name, of which a parser would keep one,
/// and for values nested so deeply that writing them again would overflow the stack.
template <class Json>
Json parse_json(const std::string& text, std::string_view what) {
  constexpr std::size_t kDeepest = 32;  // files of checkpoints have 6
  std::vector<std::set<std::string>> names;
  const auto check = [&](int /*depth*/, typename Json::parse_event_t event, Json& value) {
    using Event = typename Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) names.emplace_back();
    if (event == Event::object_end || event == Event::array_end) names.pop_back();
    if (names.size() > kDeepest) throw DataLoss("{} is nested more than {} levels deep", what, kDeepest);
    if (event == Event::key && !names.back().insert(value.template get<std::string>()).second)
      throw DataLoss("{} has '{}' twice", what, value.template get<std::string>());
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const typename Json::exception& error) {
    throw DataLoss("{} is no JSON: {}", what, error.what());
  }
}

}  // namespace cohort::checkpoint
