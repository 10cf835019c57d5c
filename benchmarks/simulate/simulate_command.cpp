#include <algorithm>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command_line.h"
#include "report.h"
#include "simulate/simulate.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kSimulateAbout =
    R"(simulate: predicts the times of collectives between many nodes, by the library's own code on a virtual clock and
over a network by a model; what members do on their node takes no time. Or carries out jobs in which members are killed
and links are cut. In one process.

  cohort-bench simulate [options]
)";

OptionsDescription simulate_options() {
  OptionsDescription all = make_options("Options of simulate");
  add_option(all, "nodes", "N", "up to N nodes, from 2 on in powers of two; default 256");
  add_option(all, "lanes", "N", "members of each node, with 0.7 MiB of memory for each; default 4");
  add_option(all, "latency-ns", "NS", "of a message between two nodes; default 2000");
  add_option(all, "gbits", "N", "a node's link, in Gbit/s; default 100");
  add_option(all, "eager-bytes", "N", "longer messages wait for their receives; default 8192");
  add_option(all, "bytes", "N", "of each call's largest buffer; default: of each call, some sizes");
  add_option(all, "collective", "NAME", "only this one, for example all-reduce; default: all");
  add_option(all, "gap-ns", "NS", "at least, between two messages of a node; default 200");
  add_option(all, "message-bytes", "N", "the longest message of a long call; default 57344");
  add_option(all, "group", "N", "nodes below one switch; default 0: all");
  add_option(all, "taper", "N", "nodes' bandwidth over that of their switch's link; default 1");
  add_option(all, "plot", "FILE", "write a picture of the times there, in SVG");
  add_option(all, "faults", "N", "carry out N jobs with a fault instead, and check them");
  add_option(all, "seed", "N", "of the first such job; default 1");
  return all;
}

/// As commands are called.
std::string name_of(CollectiveKind kind) {
  std::string name(to_string(kind));
  std::ranges::replace(name, '_', '-');
  return name;
}

CollectiveKind parse_kind(const std::string& name) {
  const auto found = std::ranges::find(kSimulatedKinds, name, name_of);
  if (found != kSimulatedKinds.end()) return *found;
  std::vector<std::string> names;
  std::ranges::transform(kSimulatedKinds, std::back_inserter(names), name_of);
  throw UsageError("--collective {}: choose one of {}", name, fmt::join(names, ", "));
}

CommandOptions parse_simulate(const GivenOptions& given) {
  SimulateOptions simulate;
  constexpr int kMany = 1 << 20;
  if (given.has("nodes")) simulate.nodes = given.count("nodes", 2, 4096);
  if (given.has("lanes")) simulate.lanes = given.count("lanes", 1, 64);
  if (given.has("latency-ns")) simulate.network.latency_seconds = given.count("latency-ns", 0, kMany) * 1e-9;
  if (given.has("gbits")) simulate.network.seconds_per_byte = 8e-9 / given.count("gbits", 1, kMany);
  if (given.has("eager-bytes"))
    simulate.network.eager_bytes = static_cast<std::size_t>(given.count("eager-bytes", 1, 1 << 30));
  if (given.has("bytes")) simulate.bytes = static_cast<std::size_t>(given.count("bytes", 1, 1 << 30));
  if (given.has("collective")) simulate.kind = parse_kind(given.text("collective"));
  if (given.has("gap-ns")) simulate.network.gap_seconds = given.count("gap-ns", 0, kMany) * 1e-9;
  if (given.has("message-bytes"))
    simulate.network.message_bytes = static_cast<std::size_t>(given.count("message-bytes", 1, 1 << 30));
  if (given.has("group")) simulate.network.nodes_of_group = given.count("group", 0, kMany);
  if (given.has("taper")) simulate.network.taper = given.count("taper", 1, kMany);
  if (given.has("faults")) simulate.faults = static_cast<std::uint64_t>(given.count("faults", 1, kMany));
  if (simulate.faults) given.refuse({"plot", "collective", "bytes"}, "jobs with faults have no times");
  simulate.plot = given.text("plot");
  if (given.has("seed")) simulate.seed = static_cast<std::uint64_t>(given.count("seed", 1, 1 << 30));
  return simulate;
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .group = "Machines with many cores",
          .text = "collectives between up to 4096 nodes, simulated",
          .about = kSimulateAbout,
          .options = simulate_options,
          .parse = parse_simulate};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const SimulateResult& result) {
  using Row = SimulateRow;
  const SimulateOptions& options = result.options;
  RowsReport<Row> report{.name = "simulated",
                         .introduction = {},
                         .fields = {{"collective", &Row::collective},
                                    {"nodes", &Row::nodes},
                                    {"lanes", [&](const Row& /*row*/) { return options.lanes; }},
                                    {"bytes", &Row::bytes},
                                    {"algorithm", &Row::algorithm},
                                    {"simulated_us", &Row::simulated_us, "{:.4g}"},
                                    {"formula_us", &Row::formula_us, "{:.4g}"}},
                         .columns = {}};
  if (options.faults) {
    report.introduction =
        fmt::format("# {} jobs with a fault, from seed {} on: all end, and name who is guilty\n",
                    *options.faults, options.seed);
  } else {
    report.introduction = fmt::format(
        "# simulated, not measured: {} members on each node, {:.3g} us between nodes, {:.3g} Gbit/s for each "
        "node; what members do on their node takes no time\n"
        "# formula: what the library expects when it chooses an algorithm\n\n",
        options.lanes, options.network.latency_seconds * 1e6, 8e-9 / options.network.seconds_per_byte);
    report.columns = {{"collective", -16, &Row::collective},
                      {"nodes", 6, &Row::nodes},
                      {"bytes", 9, &Row::bytes},
                      {"algorithm", -28, &Row::algorithm},
                      {"simulated us", 13, &Row::simulated_us},
                      {"formula us", 11, &Row::formula_us}};
  }
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
