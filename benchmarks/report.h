// What the reports of all modes share. A report turns the environment and the results of a run into
// text: a table for people, CSV and JSON for programs, all from the same rows. Used by rank 0 alone.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "environment.h"
#include "run_options.h"

namespace cohort::bench {

/// The environment for people, in a few lines.
[[nodiscard]] std::string summarize(const Environment& environment);

[[nodiscard]] nlohmann::ordered_json to_json(const Environment& environment);

/// A figure that a row may not have.
template <class T>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

/// Three significant digits where that takes no more than seven characters, and never an exponent.
[[nodiscard]] std::string three_digits(double value);

/// Writes a report that is whole already, with the one of the three functions that `format` names.
template <class Table, class Csv, class Json>
void write_whole(Format format, std::ostream& stream, Table&& table, Csv&& csv, Json&& json) {
  switch (format) {
    case Format::kTable: table(); break;
    case Format::kCsv: csv(); break;
    case Format::kJson: json(); break;
  }
  stream.flush();
}

}  // namespace cohort::bench
