// Fields of CSV files, RFC 4180.
#pragma once

#include <string>
#include <string_view>

namespace cohort {

/// In quotation marks where the field needs them. A line break becomes a space: a row is one line.
inline void append_csv(std::string& out, std::string_view field, char separator) {
  const bool quoted = field.find_first_of("\"\r\n") != field.npos || field.find(separator) != field.npos;
  if (quoted) out += '"';
  for (const char letter : field) {
    if (letter == '"') out += '"';
    out += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  if (quoted) out += '"';
}

}  // namespace cohort
