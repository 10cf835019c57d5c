#include "summary/csv_text.h"

namespace cohort {

void append_csv(std::string& out, std::string_view field, char separator) {
  const bool quoted = field.find_first_of("\"\r\n") != std::string_view::npos ||
                      field.find(separator) != std::string_view::npos;
  if (quoted) out += '"';
  for (const char letter : field) {
    if (letter == '"') out += '"';
    out += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  if (quoted) out += '"';
}

std::vector<std::string> csv_fields(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && line.substr(i + 1).starts_with('"'))
      fields.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == separator && !quoted)
      fields.emplace_back();
    else if (line[i] != '\r')
      fields.back() += line[i];
  }
  return fields;
}

}  // namespace cohort
