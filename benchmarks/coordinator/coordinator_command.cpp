#include <ostream>

#include <fmt/format.h>

#include "command_line.h"
#include "coordinator/coordinator.h"
#include "report.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kCoordinatorAbout =
    R"(Usage: cohort-bench coordinator [OPTION ...]
   or: cohort-run --roles chief=1,worker=W,ps=P cohort-bench coordinator [OPTION ...]

coordinator: how many functions a second workers run for a coordinator, and how long one takes there and
back: empty ones, and ones that change variables of parameter servers. Starts its tasks itself, or takes
those of cohort-run.
)";

OptionsDescription coordinator_options() {
  OptionsDescription all = make_options("Options of coordinator");
  add_loops(all, "loops per figure, of which the median counts; default 5");
  return all;
}

CommandOptions parse_coordinator(const GivenOptions& given) {
  return CoordinatorOptions{.loops = given.loops()};
}

}  // namespace

Command coordinator_command() {
  return {.name = "coordinator",
          .group = "Parameter servers",
          .text = "functions that workers run, next to the original",
          .about = kCoordinatorAbout,
          .options = coordinator_options,
          .parse = parse_coordinator};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const CoordinatorResult& result) {
  using Row = CoordinatorRow;
  const RowsReport<Row> report{
      .name = "coordinator",
      .facts = {{"loops", result.loops}},
      .introduction = fmt::format(
          "# coordinator: functions of workers, which are processes; median of {} loops\n"
          "# round trip: one is scheduled and its result fetched; cpu: of the coordinator, per closure\n"
          "# no workers: the commits of a server's memory alone, without and with a record of them\n"
          "# original: TensorFlow 2.21.0 on 2 cores that had other work, too\n\n",
          result.loops),
      .fields = {{"case", &Row::name},
                 {"workers", &Row::workers},
                 {"servers", &Row::servers},
                 {"closures_per_s", &Row::closures_per_s, "{:.0f}"},
                 {"round_trip_us", &Row::round_trip_us, "{:.2f}"},
                 {"chief_cpu_us", &Row::chief_cpu_us, "{:.2f}"},
                 {"original_per_s", &Row::original_per_s, "{:.2f}"},
                 {"original_round_trip_us", &Row::original_trip_us, "{:.2f}"}},
      .columns = {
          {"case", -16, &Row::name},
          {"workers", 7, &Row::workers},
          {"servers", 7, &Row::servers},
          {"closures/s", 11, [](const Row& row) { return fmt::format("{:.0f}", row.closures_per_s); }},
          {"round trip us", 13, &Row::round_trip_us},
          {"cpu us", 8, &Row::chief_cpu_us},
          {"original/s", 10, &Row::original_per_s},
          {"its trip us", 13, &Row::original_trip_us}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
