// CSV, from lines to records of fields, and from the wanted fields to numbers.

#include <cohort/input/detail/csv_file.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

#include "foreign_data.h"
#include "input_file.h"

namespace cohort::detail {

struct CsvField {
  std::string_view text;  ///< without the quotes around it
  bool quoted = false;
};

/// Text into records of fields, as RFC 4180 has it: a field in quotes may hold delimiters, newlines and,
/// doubled, quotes. Blank lines and comments are skipped.
class CsvParser {
 public:
  /// Lines that start with `comment` are skipped. @throws Unavailable when the file cannot be opened.
  CsvParser(const std::string& path, char delimiter, std::optional<char> comment)
      : lines_(path, "CSV"), delimiter_(delimiter), comment_(comment) {}

  /// The next record; nothing at the end. Valid until the next call.
  /// @throws DataLoss for quotes that do not pair or stand in the middle of a field.
  [[nodiscard]] std::optional<std::span<const CsvField>> next();

  [[nodiscard]] bool is_empty() const { return lines_.is_empty(); }

  /// The number, from 1, of the first line of the record that next() returned.
  [[nodiscard]] std::int64_t line_number() const { return line_number_; }
  [[nodiscard]] const std::string& path() const { return lines_.path(); }

 private:
  [[nodiscard]] bool is_passed_over(std::string_view line) const;
  void split_plain(std::string_view record);
  void read_quoted_record(std::string_view line);
  void split_quoted();
  [[noreturn]] void fail(const std::string& what) const;

  LineReader lines_;
  char delimiter_;
  std::optional<char> comment_;
  std::int64_t line_number_ = 0;
  std::string quoted_record_;  ///< the whole record, whose fields are unquoted in place
  std::vector<CsvField> fields_;
};

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

namespace {

enum class Parsed { kNumber, kNotANumber, kDoesNotFit };

template <Element T>
bool fits(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value == 0 || value == 1;
  } else if constexpr (std::is_integral_v<T>) {
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return std::floor(value) == value && value >= static_cast<double>(std::numeric_limits<T>::min()) &&
           value < beyond;
  } else {
    return std::isinf(value) || !std::isinf(convert_element<double>(convert_element<T>(value)));
  }
}

/// Whether a number that std::from_chars reads, but finds out of range, is too small: not which side it is.
bool is_below_one(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_of("eE"), text.size());
  std::int64_t exponent = 0;
  if (digits < text.size()) {
    const bool is_negative = text[digits + 1] == '-';
    const std::size_t begin = digits + (is_negative || text[digits + 1] == '+' ? 2 : 1);
    // One that is itself out of range decides alone.
    if (std::from_chars(text.data() + begin, text.data() + text.size(), exponent).ec != std::errc())
      return is_negative;
    if (is_negative) exponent = -exponent;
  }
  const std::size_t point = std::min(text.substr(0, digits).find('.'), digits);
  const std::size_t first = text.substr(0, digits).find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  const auto before_point = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  return before_point + exponent <= 0;
}

template <Element T>
Parsed parse(std::string_view text, T& number) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.starts_with('+') && !text.starts_with("+-") && !text.starts_with("++")) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // Not through double, which would round large integers.
    const auto [stopped, status] = std::from_chars(text.data(), end, number);
    if (stopped == end && status == std::errc()) return Parsed::kNumber;
    if (stopped == end && status == std::errc::result_out_of_range) return Parsed::kDoesNotFit;
  }
  double value = 0;
  const auto [stopped, status] = std::from_chars(text.data(), end, value);
  if (stopped != end || status == std::errc::invalid_argument) return Parsed::kNotANumber;
  if (status == std::errc::result_out_of_range) {
    if (std::is_integral_v<T> || !is_below_one(text)) return Parsed::kDoesNotFit;
    value = text.starts_with('-') ? -0.0 : 0.0;
  }
  if (!fits<T>(value)) return Parsed::kDoesNotFit;
  number = convert_element<T>(value);
  return Parsed::kNumber;
}

}  // namespace

void check_csv_options(const CsvOptions& options, std::optional<std::size_t> columns) {
  if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r' ||
      options.delimiter == options.comment) {
    throw InvalidArgument("'{}' cannot delimit the fields of CSV; use a comma, a semicolon or a tab",
                          excerpt({&options.delimiter, 1}));
  }
  if (!options.columns.empty() && !options.has_header) {
    throw InvalidArgument("columns {} are found by the header's names; set has_header if the files have one",
                          fmt::join(options.columns, ", "));
  }
  if (columns && options.dtype) {
    throw InvalidArgument("dtype {} is for rows that are tensors; the fields of these rows have C++ types",
                          to_string(*options.dtype));
  }
  if (columns && !options.columns.empty() && options.columns.size() != *columns) {
    throw InvalidArgument("{} columns are named ({}), but a row takes {}", options.columns.size(),
                          fmt::join(options.columns, ", "), *columns);
  }
}

CsvFile::CsvFile(const std::string& path, const CsvOptions& options, std::optional<std::size_t> columns)
    : parser_(std::make_unique<CsvParser>(path, options.delimiter, options.comment)),
      options_(options),
      row_columns_(columns) {
  if (parser_->is_empty()) throw DataLoss("{}: the file is empty; write it again, or leave it out", path);
  if (options_.has_header) read_header();
}

CsvFile::~CsvFile() = default;

void CsvFile::read_header() {
  const auto names = parser_->next();
  if (!names) throw DataLoss("{}: no header in the file, which has no lines", parser_->path());
  may_begin_with_comment_ = names->front().text.starts_with('#');
  for (const CsvField& name : *names) header_.emplace_back(name.text);
  choose_columns(header_.size());
}

void CsvFile::choose_columns(std::size_t fields) {
  std::vector<std::size_t> wanted;
  if (options_.columns.empty()) {
    for (std::size_t index = 0; index < fields; ++index) wanted.push_back(index);
  }
  for (const std::string& name : options_.columns) wanted.push_back(find_column(name));
  if (row_columns_ && wanted.size() != *row_columns_) {
    throw InvalidArgument(
        "{}:{}: the file has {} columns, but a row of the program takes {}; change its type, or name the "
        "columns that are wanted",
        parser_->path(), parser_->line_number(), wanted.size(), *row_columns_);
  }
  fields_per_row_ = fields;
  wanted_ = std::move(wanted);
}

std::size_t CsvFile::find_column(const std::string& name) const {
  const auto found = std::ranges::find(header_, name);
  if (found == header_.end()) {
    throw InvalidArgument("{}:{}: no column is called '{}'; the header has {}", parser_->path(),
                          parser_->line_number(), name, excerpt(fmt::format("{}", fmt::join(header_, ", "))));
  }
  if (std::find(found + 1, header_.end(), name) != header_.end()) {
    throw InvalidArgument("{}:{}: several columns are called '{}'; give them different names",
                          parser_->path(), parser_->line_number(), name);
  }
  return static_cast<std::size_t>(found - header_.begin());
}

bool CsvFile::next() {
  const auto fields = parser_->next();
  if (!fields) return false;
  const bool begins_like_comment = fields->front().text.starts_with('#');
  if (fields_per_row_ == 0) {
    may_begin_with_comment_ = begins_like_comment;
    choose_columns(fields->size());
  }
  if (fields->size() != fields_per_row_) {
    throw DataLoss("{}:{}: {} fields where the {} has {}{}", parser_->path(), parser_->line_number(),
                   fields->size(), header_.empty() ? "first row" : "header", fields_per_row_,
                   about_comments(begins_like_comment || may_begin_with_comment_));
  }
  row_.assign(fields->begin(), fields->end());
  return true;
}

std::int64_t CsvFile::skip(std::int64_t count) {
  std::int64_t skipped = 0;
  while (skipped < count && parser_->next()) ++skipped;
  return skipped;
}

const CsvField& CsvFile::field(std::size_t column) const { return row_[wanted_[column]]; }

std::string_view CsvFile::text(std::size_t column) const { return field(column).text; }

bool CsvFile::is_missing(std::size_t column) const {
  return field(column).text.empty() && !field(column).quoted;
}

template <Element T>
T CsvFile::number(std::size_t column) const {
  T number{};
  switch (parse(text(column), number)) {
    case Parsed::kNumber: break;
    case Parsed::kNotANumber: throw_not_a_number(column);
    case Parsed::kDoesNotFit: throw_does_not_fit(column, kDTypeOf<T>);
  }
  return number;
}

template std::int8_t CsvFile::number(std::size_t) const;
template std::int16_t CsvFile::number(std::size_t) const;
template std::int32_t CsvFile::number(std::size_t) const;
template std::int64_t CsvFile::number(std::size_t) const;
template std::uint8_t CsvFile::number(std::size_t) const;
template std::uint16_t CsvFile::number(std::size_t) const;
template std::uint32_t CsvFile::number(std::size_t) const;
template std::uint64_t CsvFile::number(std::size_t) const;
template float16 CsvFile::number(std::size_t) const;
template bfloat16 CsvFile::number(std::size_t) const;
template float CsvFile::number(std::size_t) const;
template double CsvFile::number(std::size_t) const;
template bool CsvFile::number(std::size_t) const;

void CsvFile::throw_not_a_number(std::size_t column) const {
  // A forgotten has_header shows here.
  const bool may_be_header = parser_->line_number() == 1 && !options_.has_header;
  const bool may_be_comment = row_.front().text.starts_with('#');
  throw DataLoss("{} is '{}', which is not a number{}", describe(column), excerpt(text(column)),
                 may_be_header && !may_be_comment ? "; if this line names the columns, set has_header"
                                                  : about_comments(may_be_comment));
}

std::string CsvFile::about_comments(bool begins_like_one) const {
  return begins_like_one && !options_.comment
             ? "; if lines that begin with # are comments, set comment to '#'"
             : "";
}

void CsvFile::throw_does_not_fit(std::size_t column, DType dtype) const {
  throw DataLoss("{} is '{}', which {} cannot hold", describe(column), excerpt(text(column)),
                 to_string(dtype));
}

std::string CsvFile::describe(std::size_t column) const {
  const std::size_t index = wanted_[column];
  return fmt::format("{}:{}: field {}{}", parser_->path(), parser_->line_number(), index + 1,
                     header_.empty() ? "" : fmt::format(" ({})", excerpt(header_[index])));
}

}  // namespace cohort::detail
