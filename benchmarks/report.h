// What the reports of all modes share. A report turns the environment and the results of a run into text: a
// table for people, CSV and JSON for programs, all from the same rows. Used by rank 0 alone.
//
// A report that is written as a whole lists what its rows have, once for programs (fields) and once for
// people (columns), in the order of each, and write_rows does the rest.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "environment.h"
#include "run_context.h"

namespace cohort::bench {

using Json = nlohmann::ordered_json;

/// The environment for people, in a few lines.
[[nodiscard]] std::string summarize(const Environment& environment);

[[nodiscard]] Json to_json(const Environment& environment);

/// A figure that a row may not have.
template <class T>
[[nodiscard]] Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Three significant digits where that takes no more than seven characters, and never an exponent.
[[nodiscard]] std::string three_digits(double value);

/// A value of a row; null where the row has none.
template <class Row>
using Getter = std::function<Json(const Row&)>;

/// `get` is a member of Row, or takes one, and may give an optional.
template <class Row, class Get>
[[nodiscard]] Getter<Row> getter_of(Get get) {
  return [get = std::move(get)](const Row& row) -> Json {
    const auto& value = std::invoke(get, row);
    if constexpr (requires { or_null(value); })
      return or_null(value);
    else
      return Json(value);
  };
}

enum class FieldIn { kBoth, kCsv, kJson };

/// A value by its name in CSV, where it is empty if the row has none, and in JSON.
template <class Row>
struct Field {
  template <class Get>
  Field(const char* called, Get get, const char* csv_format = "{}", FieldIn where = FieldIn::kBoth)
      : name(called), value(getter_of<Row>(std::move(get))), csv(csv_format), in(where) {}

  const char* name;
  Getter<Row> value;
  const char* csv;  ///< how CSV has what is no whole number
  FieldIn in;
};

/// A column of the table. What is no whole number has three digits there, and what the row does not have is
/// `-`.
template <class Row>
struct Column {
  template <class Get>
  Column(const char* headed, int wide, Get get, const char* below = "")
      : heading(headed), width(wide), value(getter_of<Row>(std::move(get))), unit(below) {}

  const char* heading;
  int width;  ///< negative: aligned at the left
  Getter<Row> value;
  const char* unit;  ///< below the heading
};

template <class Row>
struct RowsReport {
  const char* name;          ///< of the object in JSON that has the rows
  Json facts = nullptr;      ///< what it has before them; null: the rows stand for it
  std::string introduction;  ///< of the table, up to its heading
  std::vector<Field<Row>> fields;
  std::vector<Column<Row>> columns;  ///< none: the introduction is the whole table
};

/// `values`, one for each of `formats`, as a line of CSV; `widths` likewise as one of a table.
[[nodiscard]] std::string csv_line(const std::vector<Json>& values, const std::vector<const char*>& formats);
[[nodiscard]] std::string table_line(const std::vector<Json>& values, const std::vector<int>& widths);

template <class Row>
void write_csv(std::ostream& stream, const RowsReport<Row>& report, const std::vector<Row>& rows) {
  std::vector<const Field<Row>*> fields;
  std::vector<Json> names;
  std::vector<const char*> formats;
  for (const Field<Row>& field : report.fields) {
    if (field.in == FieldIn::kJson) continue;
    fields.push_back(&field);
    names.push_back(field.name);
    formats.push_back(field.csv);
  }
  stream << csv_line(names, formats);
  for (const Row& row : rows) {
    std::vector<Json> values;
    values.reserve(fields.size());
    for (const Field<Row>* field : fields) values.push_back(field->value(row));
    stream << csv_line(values, formats);
  }
}

template <class Row>
void write_json(std::ostream& stream, const Environment& environment, const RowsReport<Row>& report,
                const std::vector<Row>& rows) {
  Json results = Json::array();
  for (const Row& row : rows) {
    Json object = Json::object();
    for (const Field<Row>& field : report.fields)
      if (field.in != FieldIn::kCsv) object[field.name] = field.value(row);
    results.push_back(std::move(object));
  }
  Json whole = results;
  if (!report.facts.is_null()) {
    whole = report.facts;
    whole["results"] = std::move(results);
  }
  stream << Json{{"environment", to_json(environment)}, {report.name, whole}}.dump(2) << "\n";
}

template <class Row>
void write_table(std::ostream& stream, const Environment& environment, const RowsReport<Row>& report,
                 const std::vector<Row>& rows) {
  stream << summarize(environment) << report.introduction;
  if (report.columns.empty()) return;
  std::vector<int> widths;
  std::vector<Json> headings;
  std::vector<Json> units;
  bool has_units = false;
  for (const Column<Row>& column : report.columns) {
    widths.push_back(column.width);
    headings.push_back(column.heading);
    units.push_back(column.unit);
    has_units = has_units || *column.unit != '\0';
  }
  stream << table_line(headings, widths);
  if (has_units) stream << table_line(units, widths);
  for (const Row& row : rows) {
    std::vector<Json> values;
    for (const Column<Row>& column : report.columns) values.push_back(column.value(row));
    stream << table_line(values, widths);
  }
}

template <class Row>
void write_rows(Format format, std::ostream& stream, const Environment& environment,
                const RowsReport<Row>& report, const std::vector<Row>& rows) {
  switch (format) {
    case Format::kTable: write_table(stream, environment, report, rows); break;
    case Format::kCsv: write_csv(stream, report, rows); break;
    case Format::kJson: write_json(stream, environment, report, rows); break;
  }
  stream.flush();
}

}  // namespace cohort::bench
