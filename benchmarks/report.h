// A report turns the environment and the results of a run into text: a table for people, CSV
// and JSON for programs, all from the same rows. Used by rank 0 alone.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "dispatch/dispatch.h"
#include "environment.h"
#include "input/input.h"
#include "profile/profile.h"
#include "result.h"
#include "run_options.h"

namespace cohort::bench {

class Report {
 public:
  virtual ~Report() = default;

  /// `subject` says in words what is measured against what.
  virtual void begin(const Environment& environment, const std::string& subject) = 0;
  virtual void add(const Result& result) = 0;
  /// A remark on the results.
  virtual void note(const std::string& text) = 0;
  virtual void end() = 0;
};

/// `stream` outlives the report.
[[nodiscard]] std::unique_ptr<Report> make_report(Format format, std::ostream& stream);

[[nodiscard]] std::unique_ptr<Report> make_table_report(std::ostream& stream);
[[nodiscard]] std::unique_ptr<Report> make_csv_report(std::ostream& stream);
[[nodiscard]] std::unique_ptr<Report> make_json_report(std::ostream& stream);

/// The report of a profile, which is written at once.
void write_profile(Format format, std::ostream& stream, const Environment& environment,
                   const ProfileResult& result);

/// The same of what the strategy layer costs.
void write_dispatch(Format format, std::ostream& stream, const Environment& environment,
                    const DispatchResult& result);

/// The same of what the input pipeline delivers.
void write_input(Format format, std::ostream& stream, const Environment& environment,
                 const InputResult& result);

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

/// Three significant digits where that takes no more than seven characters, and never an exponent.
[[nodiscard]] std::string three_digits(double value);

/// The environment for people, in a few lines.
[[nodiscard]] std::string summarize(const Environment& environment);

}  // namespace cohort::bench
