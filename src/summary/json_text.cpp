#include "summary/json_text.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace cohort {
namespace {

/// The length of the UTF-8 character that `text` begins with; 0 for other bytes.
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  std::size_t length = 1;
  if (first >= 0x80) length = first >= 0xF5 || first < 0xC2 ? 0 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80) return 0;
  return length;
}

void append_list(std::string& out, const Tensor& doubles, std::span<const std::int64_t> extents,
                 std::size_t begin) {
  if (extents.empty()) return append_json(out, doubles.span<double>()[begin]);
  std::size_t inner = 1;
  for (const std::int64_t extent : extents.subspan(1)) inner *= static_cast<std::size_t>(extent);
  out += '[';
  for (std::size_t i = 0; i < static_cast<std::size_t>(extents[0]); ++i) {
    if (i > 0) out += ',';
    append_list(out, doubles, extents.subspan(1), begin + i * inner);
  }
  out += ']';
}

}  // namespace

void append_json(std::string& out, double number) {
  if (std::isfinite(number))
    fmt::format_to(std::back_inserter(out), "{}", number);
  else
    out += std::isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
}

void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (text[0] == '"' || text[0] == '\\')
      out.append({'\\', text[0]});
    else if (first < 0x20 || length == 0)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", first);
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

void append_json(std::string& out, const SummaryValue& value) {
  if (const double* scalar = value.scalar()) return append_json(out, *scalar);
  if (const Tensor* tensor = value.tensor())
    return append_list(out, tensor->cast(DType::kFloat64), tensor->shape().extents(), 0);
  const std::vector<std::string>& texts = *value.texts();
  if (value.is_single) return append_json(out, texts.front());
  out += '[';
  for (const std::string& text : texts) {
    if (&text != texts.data()) out += ',';
    append_json(out, text);
  }
  out += ']';
}

}  // namespace cohort
