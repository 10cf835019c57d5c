#include <ostream>

#include <fmt/format.h>

#include "command_line.h"
#include "report.h"
#include "start/start.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kStartAbout =
    R"(Usage: mpirun -n N cohort-bench start [OPTION ...]

start: how long the ranks take to begin: MPI_Init, the rest of the Session's constructor, communicators and the
first call. The rank that takes longest counts.
)";

constexpr int kMostCommunicators = 1000;

OptionsDescription start_options() {
  OptionsDescription all = make_options("Options of start");
  add_option(all, "communicators", "N",
             "communicators after the first, of which the median counts; default 5");
  return all;
}

CommandOptions parse_start(const GivenOptions& given) {
  return StartOptions{.communicators = given.count("communicators", 5, kMostCommunicators)};
}

}  // namespace

Command start_command() {
  return {.name = "start",
          .group = "Start",
          .text = "Session and communicators, until the first call",
          .about = kStartAbout,
          .ranks = CommandRanks::kAny,
          .options = start_options,
          .parse = parse_start};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const StartResult& result) {
  using Row = StartRow;
  const RowsReport<Row> report{
      .name = "start",
      .facts = {{"communicators", result.communicators}},
      .introduction = fmt::format("# ms of the slowest rank; of {} further communicators, the median\n\n",
                                  result.communicators),
      .fields = {{"phase", &Row::phase}, {"ms", &Row::ms, "{:.4g}"}},
      .columns = {{"phase", -28, &Row::phase}, {"ms", 9, &Row::ms}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
