// Fields of CSV files, RFC 4180.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// In quotation marks where the field needs them. A line break becomes a space: a row is one line.
void append_csv(std::string& out, std::string_view field, char separator);

/// Of a line without its end; at least one.
[[nodiscard]] std::vector<std::string> csv_fields(std::string_view line, char separator);

}  // namespace cohort
