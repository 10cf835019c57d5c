#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "errors_page.h"
#include "facts.h"

namespace cohort::info {
namespace {

constexpr std::array kCodes{
    ErrorCode::kInvalidArgument, ErrorCode::kWrongContext,     ErrorCode::kUnimplemented,
    ErrorCode::kUnavailable,     ErrorCode::kDeadlineExceeded, ErrorCode::kAborted,
    ErrorCode::kDataLoss,        ErrorCode::kOutOfRange,       ErrorCode::kInternal,
};

/// `data_loss`, `DataLoss` and `cohort::DataLoss`, as the compiler's runtime prints it, are the same.
std::string letters_of(std::string_view name) {
  constexpr std::string_view kNamespace = "cohort::";
  if (name.starts_with(kNamespace)) name.remove_prefix(kNamespace.size());
  std::string letters;
  for (const char c : name)
    if (c != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

/// What stands below a heading of the page, up to the next one. Links become their words.
std::string section_of(std::string_view name) {
  const std::string heading = fmt::format("\n## {}\n\n", name);
  const std::size_t start = kErrorsPage.find(heading);
  if (start == std::string_view::npos) throw Internal("the page of errors has no section {}", name);
  const std::size_t from = start + heading.size();
  std::string_view section = kErrorsPage.substr(from, kErrorsPage.find("\n## ", from) - from);
  section = section.substr(0, section.find_last_not_of('\n') + 1);
  static const std::regex markdown_link(R"(\[([^\]]*)\]\([^)]*\))");
  return std::regex_replace(std::string(section), markdown_link, "$1");
}

}  // namespace

ErrorExplanation explain(const std::string& code) {
  const auto* const found =
      std::ranges::find(kCodes, letters_of(code), [](ErrorCode each) { return letters_of(to_string(each)); });
  if (found == kCodes.end()) {
    std::array<std::string_view, kCodes.size()> names;
    std::ranges::transform(kCodes, names.begin(), [](ErrorCode each) { return to_string(each); });
    throw InvalidArgument("--explain {}: there is no such code; choose {}", code, fmt::join(names, ", "));
  }
  const std::string name(to_string(*found));
  return {.code = name, .text = section_of(name)};
}

std::string to_text(const ErrorExplanation& explanation) {
  return fmt::format("{}\n\n{}\n", explanation.code, explanation.text);
}

std::string to_json(const ErrorExplanation& explanation) {
  return nlohmann::ordered_json({{"code", explanation.code}, {"text", explanation.text}}).dump(2);
}

}  // namespace cohort::info
