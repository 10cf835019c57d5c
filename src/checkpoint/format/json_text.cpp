#include "json_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

namespace cohort::checkpoint {

std::string quoted(std::string_view text) {
  const auto is_plain = [](char character) {
    return character >= ' ' && character <= '~' && character != '"' && character != '\\';
  };
  if (std::ranges::all_of(text, is_plain)) return fmt::format("\"{}\"", text);
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw InvalidArgument("names of values must be UTF-8");
  }
}

std::string list_of_extents(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.extents(), ","));
}

}  // namespace cohort::checkpoint
