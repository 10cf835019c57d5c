#include <ostream>

#include <fmt/format.h>

#include "command_line.h"
#include "lines/lines.h"
#include "report.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kLinesAbout =
    R"(lines: counts the cache lines that calls of many members wait for, and the bytes that they read of others, on a
machine that is only described; and predicts times from published latencies. In one process.

  cohort-bench lines [options]
)";

constexpr int kMostMembers = 512;

OptionsDescription lines_options() {
  OptionsDescription all = make_options("Options of lines");
  add_option(all, "topology", "MACHINE",
             "a file that 'lstopo FILE.xml' wrote, or a description; default 'pack:2 l3:8 core:8 pu:1'");
  add_option(all, "members", "N", "members, spread over the cores; default one per core");
  add_option(all, "latencies", "PROCESSOR", "whose latencies times are predicted by: epyc (default) or xeon");
  return all;
}

LatencyTable parse_latencies(const std::string& text) {
  if (text == "epyc") return LatencyTable::kEpyc;
  if (text == "xeon") return LatencyTable::kXeon;
  throw UsageError("--latencies: '{}' is neither epyc nor xeon", text);
}

CommandOptions parse_lines(const GivenOptions& given) {
  LinesOptions lines;
  lines.topology = given.text("topology", lines.topology.c_str());
  if (given.has("members")) lines.members = given.count("members", 1, kMostMembers);
  lines.latencies = parse_latencies(given.text("latencies", "epyc"));
  return lines;
}

}  // namespace

Command lines_command() {
  return {.name = "lines",
          .group = "Machines with many cores",
          .text = "cache lines that collectives wait for, counted",
          .about = kLinesAbout,
          .options = lines_options,
          .parse = parse_lines};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const LinesResult& result) {
  using Row = LinesRow;
  const RowsReport<Row> report{
      .name = "lines",
      .facts = {{"topology", result.topology}, {"members", result.members}, {"latencies", result.latencies}},
      .introduction = fmt::format(
          "# counted for {} members on {}; times predicted, not measured, by latencies of {}\n"
          "# n: bytes that one member contributes; chain: cache lines of the longest chain of waits, far: of "
          "them, from another socket\n\n",
          result.members, result.topology, result.latencies),
      .fields = {{"collective", &Row::collective},
                 {"engine", &Row::engine},
                 {"members", [&](const Row& /*row*/) { return result.members; }, "{}", FieldIn::kCsv},
                 {"bytes", &Row::bytes},
                 {"chain", &Row::chain},
                 {"chain_far", &Row::chain_far},
                 {"read_per_n", &Row::read, "{:.4g}"},
                 {"cross_socket_per_n", &Row::cross_socket, "{:.4g}"},
                 {"predicted_us", &Row::predicted_us, "{:.4g}"}},
      .columns = {{"collective", -16, &Row::collective},
                  {"engine", -8, &Row::engine},
                  {"n", 9, &Row::bytes},
                  {"chain", 6, &Row::chain},
                  {"far", 5, &Row::chain_far},
                  {"read per n", 10, &Row::read},
                  {"cross socket per n", 18, &Row::cross_socket},
                  {"predicted us", 13, &Row::predicted_us}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
