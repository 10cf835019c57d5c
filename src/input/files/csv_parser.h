// Text into records of fields, as RFC 4180 has it: a field in quotes may hold delimiters, newlines and,
// doubled, quotes. Blank lines and comments are skipped.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "line_reader.h"

namespace cohort::detail {

struct CsvField {
  std::string_view text;  ///< without the quotes around it
  bool quoted = false;
};

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

}  // namespace cohort::detail
