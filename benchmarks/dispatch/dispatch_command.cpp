#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "command_line.h"
#include "dispatch/dispatch.h"
#include "report.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kDispatchAbout =
    R"(Usage: cohort-bench dispatch [OPTION ...]

dispatch: what the strategy layer adds to what replicas do, on one device and on two: empty functions,
merges, reads of variables, reductions of a number, a step over 161 variables. In one process.
)";

OptionsDescription dispatch_options() {
  OptionsDescription all = make_options("Options of dispatch");
  add_loops(all, "loops per figure, of which the median counts; default 5");
  return all;
}

CommandOptions parse_dispatch(const GivenOptions& given) { return DispatchOptions{.loops = given.loops()}; }

}  // namespace

Command dispatch_command() {
  return {.name = "dispatch",
          .group = "The strategy layer",
          .text = "runs, merges and reads, next to the original",
          .about = kDispatchAbout,
          .options = dispatch_options,
          .parse = parse_dispatch};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const DispatchResult& result) {
  using Row = DispatchRow;
  const auto ratio = [](const Row& row) -> std::optional<double> {
    if (!row.original_us) return std::nullopt;
    return 1000 * *row.original_us / row.ns;
  };
  const RowsReport<Row> report{
      .name = "dispatch",
      .facts = {{"loops", result.loops}},
      .introduction =
          fmt::format("# what the strategy layer costs, median of {} loops; allocations: of all threads\n"
                      "# original: TensorFlow 2.21.0 on 2 cores, eager; ratio: its time over this one's\n\n",
                      result.loops),
      .fields = {{"operation", &Row::operation},
                 {"devices", &Row::devices},
                 {"ns", &Row::ns, "{:.1f}"},
                 {"allocations", &Row::allocations, "{:.2f}"},
                 {"original_us", &Row::original_us}},
      .columns = {{"operation", -50, &Row::operation},
                  {"devices", 7, &Row::devices},
                  {"us", 10, [](const Row& row) { return row.ns / 1000; }},
                  {"allocations", 12, &Row::allocations},
                  {"original", 10, &Row::original_us},
                  {"ratio", 8, ratio}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
