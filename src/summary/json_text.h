// Values of summaries as JSON.
#pragma once

#include <string>
#include <string_view>

#include <cohort/summary/summary_value.h>

namespace cohort {

/// With the digits that give the same number back; what JSON lacks are "NaN", "Infinity" and "-Infinity".
void append_json(std::string& out, double number);

/// Quoted; bytes that are no UTF-8 are taken for Latin-1.
void append_json(std::string& out, std::string_view text);

/// A number, a text, or lists of them.
void append_json(std::string& out, const SummaryValue& value);

}  // namespace cohort
