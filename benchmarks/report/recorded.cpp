#include "report/recorded.h"

#include "command_line.h"
#include "errors.h"
#include "report/comparison.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kRecordedAbout =
    R"(Usage: cohort-bench report --results FILE [OPTION ...]

report: a page of what an earlier run has written, or a comparison with what others have; nothing is measured.
)";

OptionsDescription recorded_options() {
  OptionsDescription options = make_options("Options of report");
  add_option(options, "results", "FILE", "of the run: its JSON report, or its page");
  add_baseline_options(options);
  return options;
}

CommandOptions parse_recorded(const GivenOptions& given) {
  if (!given.has("results"))
    throw UsageError(
        "report: no results given; write --results FILE, a JSON report or a page of an earlier run");
  if (!given.has("report") && !given.has("baseline"))
    throw UsageError(
        "report: nothing to do; write --report FILE for a page, or --baseline FILE for a comparison");
  given.refuse({"format", "output"}, "the results are already in a file");
  return RecordedOptions{.results = given.text("results")};
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .group = "Results of earlier runs",
          .text = "a page of them, or a comparison of two",
          .about = kRecordedAbout,
          .ranks = CommandRanks::kOne,
          .options = recorded_options,
          .parse = parse_recorded};
}

RecordedResult measure(const RecordedOptions& options, const CommandContext& /*context*/) {
  try {
    RecordedResult result{.report = read_results("--results", options.results)};
    if (!result.report.is_object())
      throw UsageError("--results {}: is no report of cohort-bench", options.results);
    result.report.erase("comparison");  // of that run
    return result;
  } catch (const UsageError& error) {
    throw AgreedError("{}", error.what());
  }
}

}  // namespace cohort::bench
