// What rank 0 prints: the report, to standard output or a file, as a page, and complaints to standard error.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environment.h"
#include "report/recorded.h"
#include "run_context.h"
#include "sweep/sweep.h"

namespace cohort::bench {

/// One line on standard error, marked with the program's name.
void complain(const std::string& text);

class Output {
 public:
  /// @throws UsageError when a file cannot be written, or a baseline cannot be read.
  explicit Output(const RunOptions& run);

  /// Before anything is measured. @throws UsageError when `rounds` of `sizes` sizes are too few for
  /// --fail-below.
  void require_enough_rounds(std::size_t sizes, std::size_t rounds) const;

  void begin(const Environment& environment, const std::string& subject);
  void add(std::span<const SweepRow> rows);
  void note(const std::string& text);

  /// With the baselines, where there are some. Says why the run fails by that; empty otherwise.
  [[nodiscard]] std::string compare();

  /// The whole report of a command that is no sweep, instead of the above.
  template <class Result>
  void write(const Environment& environment, const Result& result) {
    write_whole(environment, [&](Format format, std::ostream& stream) {
      write_report(format, stream, environment, result);
    });
  }
  /// The same of results that another run has written.
  void write(const Environment& environment, const RecordedResult& result);

  /// Completes the reports; there is nothing to do the second time. False when something could not
  /// be written, unless its reader wants no more, as `head` after some lines.
  [[nodiscard]] bool end();

 private:
  using WriteWhole = std::function<void(Format, std::ostream&)>;
  /// To all that the report goes to.
  void write_whole(const Environment& environment, const WriteWhole& write_to);

  Format format_;
  std::ofstream file_;
  std::ofstream page_;
  std::vector<Json> baselines_;
  std::optional<double> fail_below_;
  SweepDocument document_;  ///< of a sweep
  std::vector<std::unique_ptr<SweepReport>> reports_;
  bool environment_to_stderr_ = false;  ///< CSV has no place for it
};

}  // namespace cohort::bench
