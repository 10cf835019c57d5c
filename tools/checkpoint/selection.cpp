#include "selection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/json.h"
#include "checkpoint/format/file.h"

namespace cohort::tool {
namespace {

using Renaming = std::pair<std::string, std::string>;

constexpr std::uint64_t kLargestMap = std::uint64_t{1} << 30;

void append_map(const std::string& path, std::vector<Renaming>& renamings) {
  const std::string text = checkpoint::read_text(path, kLargestMap);
  const JsonDocument document(text, fmt::format("'{}'", path));
  if (!document.root().is(JsonValue::Kind::kObject))
    throw DataLoss("'{}' is no map of names: write an object {{\"OLD\": \"NEW\", ...}}", path);
  for (const JsonValue& name : document.root()) {
    if (!name.value().is(JsonValue::Kind::kText))
      throw DataLoss("'{}': the new name of '{}' is no text", path, name.text());
    renamings.emplace_back(name.text(), name.value().text());
  }
}

/// Those of single options first: they are the more particular ones.
checkpoint::TensorRules rules_of(const Arguments& arguments) {
  std::vector<Renaming> renamings;
  for (const std::string& text : arguments.all("--rename")) {
    const std::size_t middle = text.find('=');
    if (middle == std::string::npos)
      throw WrongUse(fmt::format("--rename is '{}', and must be OLD=NEW", text));
    renamings.emplace_back(text.substr(0, middle), text.substr(middle + 1));
  }
  if (const auto map = arguments.text("--map")) append_map(*map, renamings);
  try {
    return {renamings, arguments.all("--transpose")};
  } catch (const InvalidArgument& error) {
    throw WrongUse(error.what());
  }
}

std::optional<DType> dtype_of(const Arguments& arguments) {
  const auto name = arguments.text("--dtype");
  if (!name) return std::nullopt;
  for (const DType dtype : kAllDTypes)
    if (is_floating(dtype) && to_string(dtype) == *name) return dtype;
  throw WrongUse(fmt::format("--dtype is '{}', and must be float16, bfloat16, float32 or float64", *name));
}

}  // namespace

TensorSelection::TensorSelection(const Arguments& arguments)
    : rules_(rules_of(arguments)),
      only_(patterns(arguments.all("--only"))),
      skip_(patterns(arguments.all("--skip"))),
      dtype_(dtype_of(arguments)) {}

std::vector<TensorSelection::Pattern> TensorSelection::patterns(const std::vector<std::string>& texts) {
  std::vector<Pattern> patterns;
  patterns.reserve(texts.size());
  for (const std::string& text : texts) patterns.push_back({text});
  return patterns;
}

bool TensorSelection::matches_any(std::vector<Pattern>& patterns, const std::string& name) {
  bool result = false;
  for (Pattern& pattern : patterns) {
    if (!checkpoint::match(pattern.text, name)) continue;
    pattern.is_used = true;
    result = true;
  }
  return result;
}

bool TensorSelection::takes(const std::string& name) {
  const bool is_wanted = only_.empty() || matches_any(only_, name);
  return !matches_any(skip_, name) && is_wanted;
}

TensorSelection::Outcome TensorSelection::apply(const std::string& name, DType dtype, const Shape& shape) {
  Outcome outcome{rules_.rename(name), dtype, shape};
  outcome.is_transposed = rules_.is_transposed(name, outcome.name, shape);
  if (outcome.is_transposed) outcome.shape = checkpoint::transposed(shape);
  if (dtype_ && is_floating(dtype)) outcome.dtype = *dtype_;
  const auto [other, is_new] = old_names_.try_emplace(outcome.name, name);
  if (!is_new)
    throw InvalidArgument("'{}' and '{}' would both be called '{}'", other->second, name, outcome.name);
  return outcome;
}

void TensorSelection::require_used(const std::string& where) const {
  rules_.require_used(where);
  for (const auto* patterns : {&only_, &skip_}) {
    const auto unused = std::ranges::find(*patterns, false, &Pattern::is_used);
    if (unused == patterns->end()) continue;
    throw InvalidArgument("'{}' has nothing that is called '{}', which {} names", where, unused->text,
                          patterns == &only_ ? "--only" : "--skip");
  }
}

std::optional<std::uint64_t> bytes_given(const Arguments& arguments, const std::string& option) {
  const auto text = arguments.text(option);
  if (!text) return std::nullopt;
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr std::array<Unit, 8> kUnits{{{"", 1},
                                        {"B", 1},
                                        {"KB", 1'000},
                                        {"MB", 1'000'000},
                                        {"GB", 1'000'000'000},
                                        {"KiB", std::uint64_t{1} << 10},
                                        {"MiB", std::uint64_t{1} << 20},
                                        {"GiB", std::uint64_t{1} << 30}}};
  std::uint64_t count = 0;
  const char* const last = text->data() + text->size();
  const auto [end, status] = std::from_chars(text->data(), last, count);
  const auto unit = std::ranges::find(kUnits, std::string_view(end, last), &Unit::name);
  std::uint64_t bytes = 0;
  if (status != std::errc() || unit == kUnits.end() || __builtin_mul_overflow(count, unit->bytes, &bytes) ||
      bytes == 0)
    throw WrongUse(fmt::format("{} is '{}', and must be a size as 5GB or 500MiB", option, *text));
  return bytes;
}

}  // namespace cohort::tool
