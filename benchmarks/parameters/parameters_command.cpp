#include <ostream>

#include <fmt/format.h>

#include "command_line.h"
#include "option_values.h"
#include "parameters/parameters.h"
#include "report.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kParametersAbout =
    R"(Usage: cohort-bench parameters [OPTION ...]
   or: cohort-run --roles chief=1,worker=1,ps=P cohort-bench parameters [OPTION ...]

parameters: how fast variables of parameter servers are read and assigned, and rows of them looked up,
next to copies within one process. Starts its tasks itself, or takes those of cohort-run.
)";

OptionsDescription parameters_options() {
  OptionsDescription all = make_options("Options of parameters");
  add_option(all, "sizes", "MIN:MAX", "bytes of a variable, in steps of 4; or one size; default 4:256M");
  add_option(all, "table-mib", "N", "size of each table whose rows are looked up, in MiB; default 256");
  add_loops(all, "loops per figure, of which the median counts; default 5");
  return all;
}

CommandOptions parse_parameters(const GivenOptions& given) {
  constexpr int kMostTableMib = 1 << 16;
  ParametersOptions parameters;
  parameters.sizes = parse_size_range(given.text("sizes", "4:256M"));
  if (parameters.sizes.first % sizeof(float) != 0)
    throw UsageError("--sizes {}: variables are of float32; write multiples of 4", given.text("sizes"));
  parameters.table_mib = given.count("table-mib", 256, kMostTableMib);
  parameters.loops = given.loops();
  return parameters;
}

}  // namespace

Command parameters_command() {
  return {.name = "parameters",
          .group = "Parameter servers",
          .text = "reads and writes of variables, next to memcpy",
          .about = kParametersAbout,
          .options = parameters_options,
          .parse = parse_parameters};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ParametersResult& result) {
  using Row = ParametersRow;
  const RowsReport<Row> report{
      .name = "parameters",
      .facts = {{"table_mib", result.table_mib}, {"loops", result.loops}},
      .introduction = fmt::format(
          "# parameters: a variable on each server, taken in turn by one thread; median of {} loops\n"
          "# rows: random ones of tables of {} MiB; us: of one variable or row\n"
          "# limit: memcpy of the same bytes by one thread (to another host: a plain TCP connection), in "
          "turns\n\n",
          result.loops, result.table_mib),
      .fields = {{"case", &Row::name},
                 {"servers", &Row::servers},
                 {"bytes", &Row::bytes},
                 {"gib_per_s", &Row::gib_per_s, "{:.6g}"},
                 {"ratio_to_limit", &Row::ratio_to_limit, "{:.6g}"},
                 {"limit_gib_per_s", &Row::limit_gib_per_s, "{:.6g}"},
                 {"us", &Row::us, "{:.6g}"}},
      .columns = {{"case", -6, &Row::name},
                  {"servers", 7, &Row::servers},
                  {"bytes", 10, &Row::bytes},
                  {"us", 10, &Row::us},
                  {"GiB/s", 8, &Row::gib_per_s},
                  {"limit", 8, &Row::limit_gib_per_s},
                  {"ratio", 6, &Row::ratio_to_limit}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
