#include "json.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

namespace cohort::checkpoint {
namespace {

using Json = nlohmann::json;

/// Looks at the text without building values: a parser that compares names while it builds them takes time
/// with the square of their number.
class PlainJson final : public nlohmann::json_sax<Json> {
 public:
  explicit PlainJson(std::string_view what) : what_(what) {}

  // For the library.
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second) throw DataLoss("{} has '{}' twice", what_, name);
    return true;
  }
  bool start_object(std::size_t /*members*/) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*elements*/) override { return open(); }
  bool end_array() override { return close(); }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    throw DataLoss("{} is no JSON: {}", what_, error.what());
  }

 private:
  bool open() {
    constexpr std::size_t kDeepest = 32;  // files of checkpoints have 6
    if (names_.size() == kDeepest) throw DataLoss("{} is nested more than {} levels deep", what_, kDeepest);
    names_.emplace_back();
    return true;
  }
  bool close() {
    names_.pop_back();
    return true;
  }

  std::string_view what_;
  std::vector<std::unordered_set<std::string>> names_;  ///< of the objects and lists that are open
};

}  // namespace

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

void require_plain_json(const std::string& text, std::string_view what) {
  PlainJson checks(what);
  Json::sax_parse(text, &checks);
}

}  // namespace cohort::checkpoint
