#include "csv_parser.h"

#include <algorithm>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::detail {
namespace {

/// The byte order mark, which some programs put before UTF-8 text.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string_view without_carriage_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool has_open_quote(std::string_view record) { return std::ranges::count(record, '"') % 2 != 0; }

}  // namespace

std::optional<std::span<const CsvField>> CsvParser::next() {
  while (std::optional<std::string_view> line = lines_.next()) {
    line_number_ = lines_.line_number();
    if (line_number_ == 1 && line->starts_with(kByteOrderMark)) line->remove_prefix(kByteOrderMark.size());
    if (is_passed_over(*line)) continue;
    fields_.clear();
    if (line->find('"') == std::string_view::npos)
      split_plain(without_carriage_return(*line));
    else
      read_quoted_record(*line);
    return fields_;
  }
  return std::nullopt;
}

bool CsvParser::is_passed_over(std::string_view line) const {
  const bool is_comment = comment_ && line.starts_with(*comment_);
  return is_comment || line.find_first_not_of(" \t\r") == std::string_view::npos;
}

void CsvParser::split_plain(std::string_view record) {
  while (true) {
    const std::size_t end = record.find(delimiter_);
    fields_.push_back({.text = record.substr(0, end)});
    if (end == std::string_view::npos) return;
    record.remove_prefix(end + 1);
  }
}

void CsvParser::read_quoted_record(std::string_view line) {
  quoted_record_ = line;
  bool open = has_open_quote(line);
  while (open) {
    const std::optional<std::string_view> more = lines_.next();
    if (!more) fail("a quote is opened, but not closed before the end of the file");
    quoted_record_ += '\n';
    quoted_record_ += *more;
    open = has_open_quote(*more) != open;
  }
  quoted_record_.resize(without_carriage_return(quoted_record_).size());
  split_quoted();
}

void CsvParser::split_quoted() {
  char* in = quoted_record_.data();
  char* const end = in + quoted_record_.size();
  while (true) {
    const bool quoted = in != end && *in == '"';
    char* const begin = quoted ? ++in : in;
    char* out = begin;
    while (in != end && (quoted || *in != delimiter_)) {
      if (*in == '"') {
        const bool doubled = quoted && in + 1 != end && in[1] == '"';
        if (!doubled) break;
        ++in;
      }
      *out++ = *in++;
    }
    fields_.push_back({.text = {begin, out}, .quoted = quoted});
    if (quoted) ++in;  // there is a quote, for the quotes of a record pair
    if (in == end) return;
    if (*in != delimiter_) {
      fail(fmt::format(
          "field {} has a quote in its middle; quote the whole field, and double the quotes in it",
          fields_.size()));
    }
    ++in;
  }
}

void CsvParser::fail(const std::string& what) const {
  throw DataLoss("{}:{}: {}", path(), line_number_, what);
}

}  // namespace cohort::detail
