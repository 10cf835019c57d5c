#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kSummaryAbout =
    R"(summary: what logs cost a training: a scalar and a histogram of a SummaryWriter, at the caller, also while the
disk is slow, and until they are in the file. In one process.

  cohort-bench summary [options]
)";

OptionsDescription summary_options() {
  OptionsDescription all = make_options("Options of summary");
  add_option(all, "folder", "FOLDER",
             "where files are written, and removed; default: that of temporary files");
  add_loops(all, "loops per figure, of which the median counts; default 15");
  return all;
}

CommandOptions parse_summary(const GivenOptions& given) {
  return SummaryBenchOptions{.loops = given.loops(15), .folder = given.text("folder")};
}

}  // namespace

Command summary_command() {
  return {.name = "summary",
          .group = "Training",
          .text = "logs: scalars and histograms",
          .about = kSummaryAbout,
          .options = summary_options,
          .parse = parse_summary};
}

}  // namespace cohort::bench
