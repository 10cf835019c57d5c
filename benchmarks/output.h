// What rank 0 prints: the report, to standard output or a file, and complaints to standard error.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environment.h"
#include "run_context.h"
#include "sweep/sweep.h"

namespace cohort::bench {

/// One line on standard error, marked with the program's name.
void complain(const std::string& text);

class Output {
 public:
  /// @throws UsageError when the output file cannot be written.
  explicit Output(const RunOptions& run);

  void begin(const Environment& environment, const std::string& subject);
  void add(std::span<const SweepRow> rows);
  void note(const std::string& text);

  /// The whole report of a command that is no sweep, instead of the above.
  template <class Result>
  void write(const Environment& environment, const Result& result) {
    write_whole(environment, [&](Format format, std::ostream& stream) {
      write_report(format, stream, environment, result);
    });
  }

  /// Completes the reports; there is nothing to do the second time. False when something could not
  /// be written, unless its reader wants no more, as `head` after some lines.
  [[nodiscard]] bool end();

 private:
  using WriteWhole = std::function<void(Format, std::ostream&)>;
  /// To all that the report goes to.
  void write_whole(const Environment& environment, const WriteWhole& write_to);

  Format format_;
  std::ofstream file_;
  std::vector<std::unique_ptr<SweepReport>> reports_;
  bool environment_to_stderr_ = false;  ///< CSV has no place for it
};

}  // namespace cohort::bench
